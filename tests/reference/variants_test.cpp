// Evaluations that a right device may make, and the one that is wider than f64.
// SPDX-License-Identifier: Apache-2.0
#include <set>

#include "eval/bounds/error_bound.hpp"
#include "eval/bounds/sum_order.hpp"
#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

/// reduce_sum, a scan, a product of matrices and a contraction, each of [4, 32] over 32 elements.
Case sum_by(int way, HostTensor x) {
  Case test;
  const DType dtype = x.dtype;
  const HostTensor ones = reals(dtype, {32, 1}, std::vector<double>(32, 1));
  const NodeId in = test.input(std::move(x));
  switch (way) {
    case 0:
      test.output(test.add(Op::reduce_sum, {in}, ir::DimsAttr{{1}}, type_of(dtype, {4})));
      break;
    case 1:
      test.output(test.add(Op::cumulative_sum, {in}, ir::ScanAttr{.axis = 1}, type_of(dtype, {4, 32})));
      break;
    case 2:
      test.output(test.add(Op::matmul, {in, test.input(ones)}, ir::MatmulAttr{}, type_of(dtype, {4, 1})));
      break;
    default: {
      ir::ContractionAttr dims;
      dims.contract_a = {1};
      dims.contract_b = {0};
      test.output(test.add(Op::contraction, {in, test.input(ones)}, dims, type_of(dtype, {4, 1})));
    }
  }
  return test;
}

HostTensor whole_numbers(DType dtype) {
  HostTensor tensor = HostTensor::make(dtype, {4, 32});
  for (std::int64_t i = 0; i < 128; ++i) tensor.set(i, static_cast<double>(i * i % 61 - 30));
  return tensor;
}

}  // namespace

TEST_CASE("reference: an order takes every term once, and variants take several orders") {
  std::set<std::int64_t> firsts;
  for (const std::int64_t extent : {1, 2, 3, 7, 12, 64, 1000}) {
    for (std::uint64_t variant = 0; variant < 9; ++variant) {
      const runtime::reference::Order order(extent, variant);
      CHECK((variant != 0 || order.ascending()));
      std::set<std::int64_t> terms;
      for (std::int64_t i = 0; i < extent; ++i) terms.insert(order(i));
      CAPTURE(extent, variant);
      CHECK(static_cast<std::int64_t>(terms.size()) == extent);
      CHECK(*terms.begin() == 0);
      CHECK(*terms.rbegin() == extent - 1);
      if (extent == 1000) firsts.insert(order(0));
    }
  }
  CHECK(firsts.size() > 6);
}

TEST_CASE("reference: a variant's sums are off by a few roundings, and not where none rounds") {
  const DType dtype = GENERATE(f32, f64);
  const int way = GENERATE(0, 1, 2, 3);
  CAPTURE(way);
  const Case exact = sum_by(way, whole_numbers(dtype));
  HostTensor thirds = noise(dtype, {4, 32}, 3);  // which have bits down to the last
  for (std::int64_t i = 0; i < thirds.element_count(); ++i) thirds.set(i, thirds.get(i) / 3);
  const Case rounds = sum_by(way, thirds);
  const std::vector<double> plain = list(rounds.run(Precision::same_type));
  bool moved = false;
  for (std::uint64_t variant = 1; variant < 9; ++variant) {
    require_same(list(exact.run(Precision::same_type, variant)), list(exact.run(Precision::same_type)));
    const std::vector<double> drawn = list(rounds.run(Precision::same_type, variant));
    require_same(drawn, list(rounds.run(Precision::same_type, variant)));
    for (std::size_t i = 0; i < plain.size(); ++i) {
      moved |= drawn[i] != plain[i];
      // The sum of magnitudes of 32 elements below 1 is below 32.
      CHECK(std::fabs(drawn[i] - plain[i]) <= 2 * runtime::gamma(32, dtype) * 32);
    }
  }
  CHECK(moved);
}

TEST_CASE("reference: a variant's functions err within the table's ulps, equal values alike") {
  const DType dtype = GENERATE(f32, f64);
  Case test;
  test.output(test.add(Op::exp, {test.input(reals(dtype, {4}, {0.7, 0.7, 0, -3.1}))}, ir::NoAttr{},
                       type_of(dtype, {4})));
  const std::vector<double> plain = list(test.run(Precision::same_type));
  bool moved = false;
  for (std::uint64_t variant = 1; variant < 9; ++variant) {
    const std::vector<double> drawn = list(test.run(Precision::same_type, variant));
    CHECK(drawn[0] == drawn[1]);
    CHECK(drawn[2] == 1);
    for (std::size_t i = 0; i < drawn.size(); ++i) {
      moved |= drawn[i] != plain[i];
      CHECK(std::fabs(drawn[i] - plain[i]) <= 3 * runtime::ulp_of(plain[i], dtype));
    }
  }
  CHECK(moved);
}

TEST_CASE("reference: a wide evaluation with an f64 is wider than f64") {
  Case test;
  const NodeId x = test.input(reals(f64, {3}, {1, 0x1p-60, -1}));
  test.output(test.add(Op::reduce_sum, {x}, ir::DimsAttr{{0}}, type_of(f64, {})));
  CHECK(test.run(Precision::same_type).get(0) == 0);
  CHECK(test.run(Precision::exact).get(0) == 0);
  CHECK(test.run(Precision::wide).get(0) == 0x1p-60);
  // 1 + 2^-11 is halfway between two values of f16, and 2^-60 is what decides.
  Case rounded;
  const NodeId half = rounded.input(reals(f64, {3}, {1, 0x1p-11, 0x1p-60}));
  const NodeId sum = rounded.add(Op::reduce_sum, {half}, ir::DimsAttr{{0}}, type_of(f64, {}));
  rounded.output(rounded.add(Op::convert, {sum}, ir::NoAttr{}, type_of(f16, {})));
  CHECK(rounded.run(Precision::wide).to_host(f16).get(0) == 1 + 0x1p-10);
}

}  // namespace fuse::test
