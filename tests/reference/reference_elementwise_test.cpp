// Each element-wise op against values computed by hand.
// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/error_bound.hpp"
#include "eval/element_functions.hpp"
#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

std::int64_t count(const std::vector<double>& values) { return static_cast<std::int64_t>(values.size()); }

void check_unary(Op op, const std::vector<double>& x, const std::vector<double>& expected) {
  INFO(ir::to_string(op));
  const auto got = run_op(op, {reals(f64, {count(x)}, x)}, {}, f64, {count(x)}, Precision::exact);
  require_same(list(got), expected);
}

void check_binary(Op op, const std::vector<double>& a, const std::vector<double>& b,
                  const std::vector<double>& expected) {
  INFO(ir::to_string(op));
  const Extents shape = {count(a)};
  require_same(
      list(run_op(op, {reals(f64, shape, a), reals(f64, shape, b)}, {}, f64, shape, Precision::exact)),
      expected);
}

void check_integers(Op op, DType dtype, const std::vector<std::int64_t>& a,
                    const std::vector<std::int64_t>& b, const std::vector<std::int64_t>& expected) {
  INFO(ir::to_string(op) << " " << to_string(dtype));
  const Extents shape = {static_cast<std::int64_t>(a.size())};
  std::vector<HostTensor> inputs = {integers(dtype, shape, a)};
  if (!b.empty()) inputs.push_back(integers(dtype, shape, b));
  const DType result = ir::info(op).result == ir::ResultClass::boolean ? boolean : dtype;
  for (const Precision precision : {Precision::exact, Precision::same_type}) {
    REQUIRE(int_list(run_op(op, inputs, {}, result, shape, precision)) == expected);
  }
}

}  // namespace

TEST_CASE("reference: unary ops at the edges of double") {
  check_unary(Op::neg, {0.0, -0.0, inf, nan, 2.5}, {-0.0, 0.0, -inf, nan, -2.5});
  check_unary(Op::abs, {-0.0, -inf, nan, -2.5}, {0.0, inf, nan, 2.5});
  check_unary(Op::sign, {-0.0, 0.0, -inf, nan, 1e-310}, {0.0, 0.0, -1, nan, 1});
  check_unary(Op::floor, {-0.5, -0.0, 2.5, -inf, nan}, {-1, -0.0, 2, -inf, nan});
  check_unary(Op::ceil, {-0.5, 0.0, 2.5, inf, nan}, {-0.0, 0.0, 3, inf, nan});
  check_unary(Op::sqrt, {4, -0.0, -1, inf}, {2, -0.0, nan, inf});
  check_unary(Op::rsqrt, {4, 0.0, -1, inf, -0.0}, {0.5, inf, nan, 0.0, -inf});
  check_unary(Op::reciprocal, {4, -0.0, inf, nan}, {0.25, -inf, 0.0, nan});
  check_unary(Op::exp, {0, -inf, inf, nan, 1000}, {1, 0.0, inf, nan, inf});
  check_unary(Op::expm1, {-0.0, -inf, inf, 1e-300}, {-0.0, -1, inf, 1e-300});
  check_unary(Op::log, {1, 0.0, -1, inf}, {0.0, -inf, nan, inf});
  check_unary(Op::log1p, {-0.0, -1, -2, 1e-300}, {-0.0, -inf, nan, 1e-300});
  check_unary(Op::sin, {-0.0, inf}, {-0.0, nan});
  check_unary(Op::cos, {0, -inf}, {1, nan});
  check_unary(Op::tanh, {-0.0, inf, -inf, nan}, {-0.0, 1, -1, nan});
  check_unary(Op::erf, {-0.0, inf, -inf, nan}, {-0.0, 1, -1, nan});
}

TEST_CASE("reference: transcendental ops have their known values") {
  const std::vector<std::tuple<Op, double, double>> rows = {
      {Op::exp, 1, 2.718281828459045},      {Op::expm1, 1e-5, 1.0000050000166668e-5},
      {Op::log, 10, 2.302585092994046},     {Op::log1p, 1e-5, 9.999950000333332e-6},
      {Op::sin, 1, 0.8414709848078965},     {Op::cos, 1, 0.5403023058681398},
      {Op::tanh, 0.5, 0.46211715726000975}, {Op::erf, 0.5, 0.5204998778130465},
      {Op::rsqrt, 2, 0.7071067811865476},
  };
  for (const auto& [op, x, expected] : rows) {
    INFO(ir::to_string(op));
    const double got = run_op(op, {reals(f64, {1}, {x})}, {}, f64, {1}, Precision::exact).get(0);
    REQUIRE(std::fabs(got - expected) <= runtime::elementwise_bound(op, expected, f64));
    // The same-type form is the double rounded once.
    const double x32 = static_cast<float>(x);
    const double exact = run_op(op, {reals(f32, {1}, {x})}, {}, f32, {1}, Precision::exact).real()[0];
    const double rounded = run_op(op, {reals(f32, {1}, {x32})}, {}, f32, {1}, Precision::same_type).real()[0];
    REQUIRE(rounded == static_cast<float>(exact));
    REQUIRE(rounded != exact);
  }
}

TEST_CASE("reference: binary ops at the edges of double") {
  check_binary(Op::add, {0.1, inf, -0.0}, {0.2, -inf, -0.0}, {0.1 + 0.2, nan, -0.0});
  check_binary(Op::sub, {1, inf, 0.0}, {3, inf, 0.0}, {-2, nan, 0.0});
  check_binary(Op::mul, {3, 0.0, -0.0}, {-2, inf, 5}, {-6, nan, -0.0});
  check_binary(Op::div, {1, -1, 0, inf}, {4, 0.0, 0, inf}, {0.25, -inf, nan, nan});
  check_binary(Op::rem, {7, -7, 5.5, 1, 1, -0.0}, {3, 3, -2, 0, inf, 3}, {1, -1, 1.5, nan, 1, -0.0});
  check_binary(Op::pow, {2, -8, 0, -2, nan}, {10, 1.0 / 3, 0, 3, 0}, {1024, nan, 1, -8, 1});
  // A NaN wins from either side; +0 is greater than -0.
  check_binary(Op::max, {1, nan, 1, 0.0, -0.0}, {2, 1, nan, -0.0, 0.0}, {2, nan, nan, 0.0, 0.0});
  check_binary(Op::min, {1, nan, 1, 0.0, -0.0}, {2, 1, nan, -0.0, 0.0}, {1, nan, nan, -0.0, -0.0});
}

TEST_CASE("reference: comparisons and logic") {
  const HostTensor a = reals(f32, {5}, {1, 2, nan, 0.0, inf}), b = reals(f32, {5}, {2, 2, nan, -0.0, inf});
  const auto compare = [&](Op op) {
    return int_list(run_op(op, {a, b}, {}, boolean, {5}, Precision::same_type));
  };
  REQUIRE(compare(Op::eq) == Extents{0, 1, 0, 1, 1});
  REQUIRE(compare(Op::ne) == Extents{1, 0, 1, 0, 0});
  REQUIRE(compare(Op::lt) == Extents{1, 0, 0, 0, 0});
  REQUIRE(compare(Op::le) == Extents{1, 1, 0, 1, 1});
  REQUIRE(compare(Op::gt) == Extents{0, 0, 0, 0, 0});
  REQUIRE(compare(Op::ge) == Extents{0, 1, 0, 1, 1});
  // Integers beyond 2^53, which doubles would not tell apart.
  check_integers(Op::lt, i64, {high64 - 1, low64}, {high64, low64 + 1}, {1, 1});
  check_integers(Op::eq, i64, {high64 - 1, low64}, {high64, low64}, {0, 1});
  check_integers(Op::ne, boolean, {0, 1, 1}, {0, 0, 1}, {0, 1, 0});
  check_integers(Op::gt, i32, {3, -3}, {2, -2}, {1, 0});
  check_integers(Op::ge, i32, {3, -3}, {3, -2}, {1, 0});
  check_integers(Op::le, i32, {3, -3}, {3, -4}, {1, 0});
  check_integers(Op::logical_and, boolean, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 0, 0, 1});
  check_integers(Op::logical_or, boolean, {0, 0, 1, 1}, {0, 1, 0, 1}, {0, 1, 1, 1});
  check_integers(Op::logical_not, boolean, {0, 1}, {}, {1, 0});
}

TEST_CASE("reference: integers wrap, and divide without a fault") {
  check_integers(Op::add, i64, {high64, low64}, {1, -1}, {low64, high64});
  check_integers(Op::add, i32, {high32, low32}, {1, -1}, {low32, high32});
  check_integers(Op::sub, i64, {low64}, {1}, {high64});
  check_integers(Op::sub, i32, {low32}, {1}, {high32});
  check_integers(Op::mul, i64, {high64, 1LL << 62}, {2, 4}, {-2, 0});
  check_integers(Op::mul, i32, {65536, 46341}, {65536, 46341}, {0, -2147479015});
  check_integers(Op::neg, i64, {low64, 5}, {}, {low64, -5});
  check_integers(Op::neg, i32, {low32, 5}, {}, {low32, -5});
  check_integers(Op::abs, i64, {low64, -5}, {}, {low64, 5});
  check_integers(Op::abs, i32, {low32, -5}, {}, {low32, 5});
  check_integers(Op::sign, i32, {low32, 0, 9}, {}, {-1, 0, 1});
  check_integers(Op::div, i64, {7, -7, 7, low64, 5}, {2, 2, -2, -1, 0}, {3, -3, -3, low64, 0});
  check_integers(Op::div, i32, {7, -7, 7, low32, 5}, {2, 2, -2, -1, 0}, {3, -3, -3, low32, 0});
  check_integers(Op::rem, i64, {7, -7, 7, low64, 5}, {3, 3, -3, -1, 0}, {1, -1, 1, 0, 0});
  check_integers(Op::rem, i32, {7, -7, low32, 5}, {3, 3, -1, 0}, {1, -1, 0, 0});
  check_integers(Op::max, i64, {high64, low64}, {low64, 0}, {high64, 0});
  check_integers(Op::min, i32, {high32, low32}, {low32, 0}, {low32, low32});
  check_integers(Op::pow, i64, {3, 2, 2, -1, -1, 1, 0, 0, 2}, {4, 63, 64, -3, -2, -9, 0, -1, -1},
                 {81, low64, 0, -1, 1, 1, 1, 0, 0});
  check_integers(Op::pow, i32, {2, 2, 3}, {31, 32, 21}, {low32, 0, 1870418611});
}

TEST_CASE("reference: select takes one side, also past NaN") {
  const HostTensor condition = integers(boolean, {4}, {1, 0, 1, 0});
  const HostTensor a = reals(f32, {4}, {nan, nan, -0.0, 1}), b = reals(f32, {4}, {1, 2, 3, inf});
  require_same(list(run_op(Op::select, {condition, a, b}, {}, f32, {4}, Precision::exact)),
               {nan, 2, -0.0, inf});
  const HostTensor c = integers(i64, {4}, {high64, 1, 2, 3}), d = integers(i64, {4}, {0, low64, 5, 6});
  REQUIRE(int_list(run_op(Op::select, {condition, c, d}, {}, i64, {4}, Precision::same_type)) ==
          Extents{high64, low64, 2, 6});
}

TEST_CASE("reference: an operand used twice and reused in place") {
  Case test;
  const NodeId x = test.input(reals(f32, {3}, {1, 2, 3}));
  const ir::Type type = type_of(f32, {3});
  const NodeId negative = test.add(Op::neg, {x}, {}, type);
  const NodeId square = test.add(Op::mul, {negative, negative}, {}, type);
  test.output(test.add(Op::sub, {square, x}, {}, type));
  require_same(list(test.run(Precision::exact)), {0, 2, 6});
}

TEST_CASE("reference: a value and its source as outputs survive in-place ops") {
  Case test;
  const NodeId x = test.input(reals(f32, {2}, {1, -2}));
  const ir::Type type = type_of(f32, {2});
  const NodeId a = test.add(Op::neg, {x}, {}, type);
  const NodeId b = test.add(Op::abs, {a}, {}, type);
  test.output(b, "y");
  test.output(a, "a");
  test.output(a, "a2");
  test.output(x, "x");
  const auto result = runtime::evaluate(test.graph, test.values, {}, Precision::same_type);
  require_same(list(result.outputs.at("y")), {1, 2});
  require_same(list(result.outputs.at("a")), {-1, 2});
  require_same(list(result.outputs.at("a2")), {-1, 2});
  require_same(list(result.outputs.at("x")), {1, -2});
}

}  // namespace fuse::test
