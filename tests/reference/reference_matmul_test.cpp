// Matrix products against three nested loops.
// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/error_bound.hpp"
#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

struct Problem {
  std::int64_t batch, m, n, k;
  bool transpose_a, transpose_b;

  Extents a() const { return transpose_a ? Extents{batch, k, m} : Extents{batch, m, k}; }
  Extents b() const { return transpose_b ? Extents{batch, n, k} : Extents{batch, k, n}; }
  std::int64_t a_index(std::int64_t s, std::int64_t i, std::int64_t p) const {
    return s * m * k + (transpose_a ? p * m + i : i * k + p);
  }
  std::int64_t b_index(std::int64_t s, std::int64_t p, std::int64_t j) const {
    return s * k * n + (transpose_b ? j * k + p : p * n + j);
  }
  ReferenceTensor run(const HostTensor& a, const HostTensor& b, DType result, Precision precision) const {
    return run_op(Op::matmul, {a, b}, ir::MatmulAttr{transpose_a, transpose_b}, result, {batch, m, n},
                  precision);
  }
};

// Sums in T, in ascending k.
template <class T>
std::vector<T> loops(const Problem& p, const HostTensor& a, const HostTensor& b) {
  std::vector<T> c;
  for (std::int64_t s = 0; s < p.batch; ++s) {
    for (std::int64_t i = 0; i < p.m; ++i) {
      for (std::int64_t j = 0; j < p.n; ++j) {
        T sum = 0;
        for (std::int64_t q = 0; q < p.k; ++q) {
          const T product =
              static_cast<T>(a.get(p.a_index(s, i, q))) * static_cast<T>(b.get(p.b_index(s, q, j)));
          sum += product;
        }
        c.push_back(sum);
      }
    }
  }
  return c;
}

const std::vector<Problem>& problems() {
  static const std::vector<Problem> all = {
      {1, 1, 1, 1, false, false},   {1, 2, 8, 3, false, false},  {3, 5, 17, 9, false, false},
      {2, 7, 9, 33, true, false},   {2, 33, 20, 5, false, true}, {5, 6, 31, 4, true, true},
      {1, 65, 70, 66, false, true}, {4, 3, 2, 0, false, false},
  };
  return all;
}

}  // namespace

TEST_CASE("reference: matmul is bit for bit the plain loops, in double and in float") {
  for (const Problem& p : problems()) {
    CAPTURE(p.batch, p.m, p.n, p.k, p.transpose_a, p.transpose_b);
    const HostTensor a = noise(f32, p.a(), 11), b = noise(f32, p.b(), 12);
    require_same(list(p.run(a, b, f32, Precision::exact)), loops<double>(p, a, b));
    const std::vector<float> expected = loops<float>(p, a, b);
    require_same(list(p.run(a, b, f32, Precision::same_type)), {expected.begin(), expected.end()});
  }
}

TEST_CASE("reference: matmul of 16-bit operands accumulates in f32 and rounds once") {
  const Problem p{2, 9, 10, 64, false, true};
  const HostTensor a = noise(f16, p.a(), 1), b = noise(f16, p.b(), 2);
  const std::vector<float> sums = loops<float>(p, a, b);
  std::vector<double> rounded;
  for (const float sum : sums) rounded.push_back(static_cast<double>(half(sum)));
  require_same(list(p.run(a, b, f16, Precision::same_type)), rounded);
  require_same(list(p.run(a, b, f32, Precision::same_type)), {sums.begin(), sums.end()});
  // And it lies within the bound of the exact form.
  const auto exact = list(p.run(a, b, f16, Precision::exact));
  HostTensor x = a, y = b;
  for (std::int64_t i = 0; i < x.element_count(); ++i) x.set(i, std::fabs(a.get(i)));
  for (std::int64_t i = 0; i < y.element_count(); ++i) y.set(i, std::fabs(b.get(i)));
  const std::vector<double> magnitudes = loops<double>(p, x, y);
  for (std::size_t i = 0; i < exact.size(); ++i) {
    REQUIRE(std::fabs(rounded[i] - exact[i]) <=
            runtime::matmul_bound(p.k, magnitudes[i], exact[i], f32, f16));
  }
}

TEST_CASE("reference: integer matmul wraps") {
  const HostTensor a = integers(i32, {1, 2}, {65536, 3}), b = integers(i32, {2, 1}, {65536, 5});
  const auto got = run_op(Op::matmul, {a, b}, ir::MatmulAttr{}, i32, {1, 1}, Precision::exact);
  REQUIRE(int_list(got) == Extents{15});
  const HostTensor c = integers(i64, {1, 1}, {1LL << 62}), d = integers(i64, {1, 1}, {6});
  REQUIRE(int_list(run_op(Op::matmul, {c, d}, ir::MatmulAttr{}, i64, {1, 1}, Precision::same_type)) ==
          Extents{std::numeric_limits<std::int64_t>::min()});
}

TEST_CASE("reference: NaN and infinity stay in their row and column of a matmul") {
  const HostTensor a = reals(f32, {3, 2}, {1, nan, 1, 2, inf, 0}), b = reals(f32, {2, 1}, {0, 1});
  require_same(list(run_op(Op::matmul, {a, b}, ir::MatmulAttr{}, f32, {3, 1}, Precision::exact)),
               {nan, 2, nan});
}

TEST_CASE("reference: matmul and long element-wise ops do not depend on threads") {
  const Problem p{1, 131, 77, 200, false, false};
  const HostTensor a = noise(f32, p.a(), 5), b = noise(f32, p.b(), 6);
  const auto first = list(p.run(a, b, f32, Precision::same_type));
  const std::vector<float> expected = loops<float>(p, a, b);
  require_same(first, {expected.begin(), expected.end()});
  for (int run = 0; run < 5; ++run) {
    REQUIRE((list(p.run(a, b, f32, Precision::same_type)) == first));
  }
  const HostTensor x = noise(f32, {300001}, 9);
  const auto exponentials = list(run_op(Op::exp, {x}, {}, f32, {300001}, Precision::same_type));
  for (std::size_t i = 0; i < exponentials.size(); i += 1009) {
    REQUIRE(exponentials[i] == static_cast<float>(std::exp(x.get(static_cast<std::int64_t>(i)))));
  }
  REQUIRE((list(run_op(Op::exp, {x}, {}, f32, {300001}, Precision::same_type)) == exponentials));
}

TEST_CASE("reference: matmul that does not fit for these dims") {
  const auto run = [] {
    run_op(Op::matmul, {HostTensor::make(f32, {2, 3}), HostTensor::make(f32, {4, 5})}, ir::MatmulAttr{}, f32,
           {2, 5}, Precision::exact);
  };
  const Error error = error_of(run);
  REQUIRE(error.code() == ErrorCode::shape_mismatch);
  REQUIRE_THAT(error.what(), Catch::Contains("matmul(f32[2, 3], f32[4, 5])"));
}

}  // namespace fuse::test
