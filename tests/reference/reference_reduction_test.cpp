// Reductions over every set of dims, against loops over coordinates.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "eval/bounds/error_bound.hpp"
#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

Extents kept_extents(const Extents& shape, const Extents& dims) {
  Extents kept;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end())
      kept.push_back(shape[d]);
  }
  return kept;
}

ReferenceTensor reduce(Op op, const HostTensor& x, const Extents& dims, Precision precision) {
  const DType dtype = ir::info(op).identity == ir::Identity::none ? i64 : x.dtype;
  return run_op(op, {x}, ir::DimsAttr{dims}, dtype, kept_extents(x.shape, dims), precision);
}

std::vector<double> reals_of(Op op, const HostTensor& x, const Extents& dims, Precision precision) {
  return list(reduce(op, x, dims, precision));
}

}  // namespace

TEST_CASE("reference: every set of dims of a rank-4 tensor") {
  const Extents shape = {2, 3, 1, 4};
  const HostTensor x = noise(f32, shape, 7);
  for (unsigned mask = 0; mask < 16; ++mask) {
    Extents dims;
    for (std::int64_t d = 0; d < 4; ++d) {
      if ((mask >> d & 1) != 0) dims.push_back(d);
    }
    // One float at a time in row-major order, which is what the same-type form promises.
    const auto bit = [&](unsigned d) { return static_cast<std::int64_t>(mask >> d & 1); };
    std::vector<float> sums(24, 0.0F);
    std::vector<double> best(24, -inf);
    std::vector<std::int64_t> position(24, 0);
    for (std::int64_t i = 0; i < 24; ++i) {
      const std::int64_t at[] = {i / 12, i / 4 % 3, 0, i % 4};
      std::int64_t out = 0, among = 0;
      for (unsigned d = 0; d < 4; ++d) {
        out = bit(d) != 0 ? out : out * shape[d] + at[d];
        among = bit(d) != 0 ? among * shape[d] + at[d] : among;
      }
      const auto slot = static_cast<std::size_t>(out);
      sums[slot] += static_cast<float>(x.get(i));
      if (x.get(i) > best[slot]) {
        best[slot] = x.get(i);
        position[slot] = among;
      }
    }
    const auto got = reals_of(Op::reduce_sum, x, dims, Precision::same_type);
    CAPTURE(mask);
    const auto used = static_cast<std::ptrdiff_t>(got.size());
    REQUIRE(std::vector<float>(got.begin(), got.end()) ==
            std::vector<float>(sums.begin(), sums.begin() + used));
    REQUIRE(reals_of(Op::reduce_max, x, dims, Precision::exact) ==
            std::vector<double>(best.begin(), best.begin() + used));
    REQUIRE(int_list(reduce(Op::argmax, x, dims, Precision::exact)) ==
            Extents(position.begin(), position.begin() + used));
  }
}

TEST_CASE("reference: reductions by hand") {
  const HostTensor x = reals(f64, {2, 3}, {1, 2, 3, 4, 5, 6});
  require_same(reals_of(Op::reduce_sum, x, {1}, Precision::exact), {6, 15});
  require_same(reals_of(Op::reduce_sum, x, {0}, Precision::exact), {5, 7, 9});
  require_same(reals_of(Op::reduce_prod, x, {0, 1}, Precision::same_type), {720});
  require_same(reals_of(Op::reduce_min, x, {0}, Precision::exact), {1, 2, 3});
  require_same(reals_of(Op::reduce_max, x, {1}, Precision::exact), {3, 6});
  require_same(reals_of(Op::reduce_sum, reals(f32, {}, {3}), {}, Precision::exact), {3});
}

TEST_CASE("reference: NaN, infinity and ties in reductions") {
  const HostTensor x = reals(f32, {3, 4}, {1, nan, 3, nan, inf, 1, inf, 0, -inf, -inf, -inf, -inf});
  require_same(reals_of(Op::reduce_max, x, {1}, Precision::same_type), {nan, inf, -inf});
  require_same(reals_of(Op::reduce_min, x, {1}, Precision::exact), {nan, 0, -inf});
  require_same(reals_of(Op::reduce_sum, x, {1}, Precision::exact), {nan, inf, -inf});
  // The first NaN, the first of equals; a row of the identity itself still has a first.
  REQUIRE(int_list(reduce(Op::argmax, x, {1}, Precision::exact)) == Extents{1, 0, 0});
  REQUIRE(int_list(reduce(Op::argmin, x, {1}, Precision::same_type)) == Extents{1, 3, 0});
  REQUIRE(int_list(reduce(Op::argmax, x, {0}, Precision::exact)) == Extents{1, 0, 1, 0});
  REQUIRE(int_list(reduce(Op::argmax, reals(f32, {2}, {-0.0, 0.0}), {0}, Precision::exact)) == Extents{0});
}

TEST_CASE("reference: empty reductions give the identity") {
  const HostTensor x = HostTensor::make(f32, {2, 0});
  require_same(reals_of(Op::reduce_sum, x, {1}, Precision::exact), {0.0, 0.0});
  require_same(reals_of(Op::reduce_prod, x, {1}, Precision::exact), {1, 1});
  require_same(reals_of(Op::reduce_max, x, {1}, Precision::same_type), {-inf, -inf});
  require_same(reals_of(Op::reduce_min, x, {1}, Precision::same_type), {inf, inf});
  require_same(reals_of(Op::reduce_sum, x, {0}, Precision::exact), {});
  REQUIRE(int_list(reduce(Op::argmax, x, {1}, Precision::exact)) == Extents{0, 0});
  REQUIRE(int_list(reduce(Op::reduce_max, HostTensor::make(i32, {0}), {0}, Precision::exact)) ==
          Extents{low32});
  REQUIRE(int_list(reduce(Op::reduce_min, HostTensor::make(i32, {0}), {0}, Precision::exact)) ==
          Extents{high32});
  REQUIRE(int_list(reduce(Op::reduce_max, HostTensor::make(i64, {0}), {0}, Precision::exact)) ==
          Extents{low64});
}

TEST_CASE("reference: integer sums and products wrap to their width") {
  const HostTensor x = integers(i32, {3}, {high32, high32, 2});
  REQUIRE(int_list(reduce(Op::reduce_sum, x, {0}, Precision::exact)) == Extents{0});
  REQUIRE(int_list(reduce(Op::reduce_prod, integers(i32, {2}, {65536, 65537}), {0}, Precision::same_type)) ==
          Extents{65536});
  const HostTensor wide = integers(i64, {2}, {low64, -1});
  REQUIRE(int_list(reduce(Op::reduce_sum, wide, {0}, Precision::exact)) ==
          Extents{std::numeric_limits<std::int64_t>::max()});
  REQUIRE(int_list(reduce(Op::argmin, wide, {0}, Precision::exact)) == Extents{0});
}

TEST_CASE("reference: the same-type sum stays within the bound of the exact one") {
  const HostTensor x = noise(f32, {4, 10000}, 3);
  const auto exact = reals_of(Op::reduce_sum, x, {1}, Precision::exact);
  const auto rounded = reals_of(Op::reduce_sum, x, {1}, Precision::same_type);
  for (std::int64_t row = 0; row < 4; ++row) {
    double magnitude = 0;
    for (std::int64_t i = 0; i < 10000; ++i) magnitude += std::fabs(x.get(row * 10000 + i));
    const auto at = static_cast<std::size_t>(row);
    REQUIRE(rounded[at] != exact[at]);
    REQUIRE(std::fabs(rounded[at] - exact[at]) <=
            runtime::reduction_bound(Op::reduce_sum, 10000, magnitude, f32));
  }
  // 2^24 + 1 + 1 loses both ones, one after the other.
  const HostTensor stuck = reals(f32, {3}, {16777216, 1, 1});
  require_same(reals_of(Op::reduce_sum, stuck, {0}, Precision::same_type), {16777216});
  require_same(reals_of(Op::reduce_sum, stuck, {0}, Precision::exact), {16777218});
}

}  // namespace fuse::test
