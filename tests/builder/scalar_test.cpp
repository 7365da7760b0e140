// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <limits>

#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {

/// The value of the constant that the last op of `graph` uses.
ir::ConstantAttr constant_in(const Graph& g) {
  for (auto node = ir_of(g).nodes.rbegin(); node != ir_of(g).nodes.rend(); ++node) {
    if (node->op == ir::Op::constant) return ir::attr<ir::ConstantAttr>(*node);
  }
  FAIL("no constant");
  return {};
}

}  // namespace

TEST_CASE("a number takes the type and the shape of the other operand", "[builder][scalar]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8});
  REQUIRE((x * 2).type_string() == "f32[4, 8]");
  REQUIRE(trace(g, 1) == "constant() f32[]; broadcast_in_dim(%1) f32[4, 8]; mul(%0, %2) f32[4, 8]");
  REQUIRE((1 - x).type_string() == "f32[4, 8]");
  REQUIRE(trace(g, 4) == "constant() f32[]; broadcast_in_dim(%4) f32[4, 8]; sub(%5, %0) f32[4, 8]");
}

TEST_CASE("a number with a scalar tensor is not broadcast", "[builder][scalar]") {
  Graph g;
  const Tensor x = g.input("x", i64, {});
  (void)(x + 1);
  REQUIRE(trace(g, 1) == "constant() i64[]; add(%0, %1) i64[]");
}

TEST_CASE("a number is rounded to the type of the tensor", "[builder][scalar]") {
  Graph g;
  (void)(g.input("a", f64, {}) * 0.1);
  REQUIRE(constant_in(g).real == 0.1);
  (void)(g.input("b", f32, {}) * 0.1);
  REQUIRE(constant_in(g).real == static_cast<double>(0.1f));
  (void)(g.input("c", f16, {}) * 0.1);
  REQUIRE(constant_in(g).real == static_cast<double>(half(0.1)));
  REQUIRE(ir_of(g)[ir_of(g).nodes.size() - 3].type.dtype == f32);  // rounded to f16, held as f32
  (void)(g.input("d", bf16, {}) * 0.1);
  REQUIRE(constant_in(g).real == static_cast<double>(bfloat16(0.1)));
  (void)(g.input("e", f32, {}) * -std::numeric_limits<double>::infinity());
  REQUIRE(constant_in(g).real == -std::numeric_limits<double>::infinity());
  (void)(g.input("f", f32, {}) * std::nan(""));
  REQUIRE(std::isnan(constant_in(g).real));
  (void)(g.input("g", f32, {}) * -0.0);
  REQUIRE(std::signbit(constant_in(g).real));
}

TEST_CASE("integers take whole numbers in their range", "[builder][scalar]") {
  Graph g;
  const Tensor i = g.input("i", i32, {}), l = g.input("l", i64, {}), b = g.input("b", boolean, {});
  (void)(i + 2.0);
  REQUIRE(constant_in(g).integer == 2);
  (void)(i + std::numeric_limits<std::int32_t>::min());
  REQUIRE(constant_in(g).integer == std::numeric_limits<std::int32_t>::min());
  (void)(l + std::numeric_limits<std::int64_t>::max());
  REQUIRE(constant_in(g).integer == std::numeric_limits<std::int64_t>::max());
  (void)(b && true);
  REQUIRE(constant_in(g).integer == 1);

  REQUIRE(error_of([&](auto& at) { at = here(), (void)(i + 0.5); }) ==
          "HERE: add(i32[], 0.5): the number 0.5 has a fraction and cannot be of type i32\n"
          "  hint: convert the tensor to a floating type first");
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(3000000000 * i); }) ==
          "HERE: mul(3000000000, i32[]): the number 3000000000 does not fit in i32\n"
          "  hint: use a number in the range of the type");
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(l + 18446744073709551615u); }) ==
          "HERE: add(i64[], 18446744073709551615): the number 18446744073709551615 does not fit in i64\n"
          "  hint: use a number in the range of the type");
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(b || 2); }) ==
          "HERE: logical_or(bool[], 2): the number 2 does not fit in bool\n  hint: a bool is 0 or 1");
  for (const double bad : {1e300, -1e300, 9223372036854775808.0, std::nan(""), HUGE_VAL}) {
    REQUIRE(code_of([&] { (void)(l + bad); }) == ErrorCode::dtype_mismatch);
  }
}

TEST_CASE("a written integer must be exact in a floating type", "[builder][scalar]") {
  Graph g;
  const Tensor h = g.input("h", f16, {}), f = g.input("f", f32, {}), d = g.input("d", f64, {});
  (void)(h * 2048);
  REQUIRE(constant_in(g).real == 2048);
  (void)(h * 2049.0);
  REQUIRE(constant_in(g).real == 2048);
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(h * 2049); }) ==
          "HERE: mul(f16[], 2049): the number 2049 is not exact in f16\n"
          "  hint: write it with a decimal point if it may be rounded");
  REQUIRE(code_of([&] { (void)(f * 16777217); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { (void)(f * 16777216); }) == ErrorCode::ok);
  REQUIRE(code_of([&] { (void)(d * 9007199254740993); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { (void)(d * std::numeric_limits<std::int64_t>::min()); }) == ErrorCode::ok);
  REQUIRE(code_of([&] { (void)(d * 9223372036854775808u); }) == ErrorCode::ok);
  REQUIRE(code_of([&] { (void)(d * 9223372036854775809u); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { (void)(d * std::numeric_limits<std::uint64_t>::max()); }) ==
          ErrorCode::dtype_mismatch);
}

TEST_CASE("a number that would be rounded to infinity is refused", "[builder][scalar]") {
  Graph g;
  const Tensor h = g.input("h", f16, {}), f = g.input("f", f32, {}), b = g.input("b", bf16, {});
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(h + 65520.0); }) ==
          "HERE: add(f16[], 65520): the number 65520 does not fit in f16\n"
          "  hint: use a smaller number, or an infinity where that is meant");
  REQUIRE(code_of([&] { (void)(f * -1e39); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { (void)(b * 1e39); }) == ErrorCode::dtype_mismatch);
  REQUIRE(code_of([&] { (void)(h * 65519.0); }) == ErrorCode::ok);
}

TEST_CASE("numbers alone have no type", "[builder][scalar]") {
  Graph g;
  const Tensor c = g.input("c", boolean, {4}), x = g.input("x", f32, {4});
  REQUIRE(error_of([&](auto& at) { at = here(), select(c, 1, 0); }) ==
          "HERE: select(bool[4], 1, 0): numbers alone have no element type\n"
          "  hint: make one of them a tensor with Graph::constant");
  REQUIRE(error_of([&](auto& at) { at = here(), fuse::maximum(1, 2); }) ==
          "HERE: maximum(1, 2): no operand is a tensor\n  hint: make a number a tensor with Graph::constant");
  REQUIRE(error_of([&](auto& at) { at = here(), matmul(x, 2); }) ==
          "HERE: matmul(f32[4], 2): a number stands where a tensor is needed\n"
          "  hint: make it a tensor with Graph::constant");
}

TEST_CASE("constants have any type and shape", "[builder][scalar]") {
  Graph g;
  const Dim B = g.dim("B");
  REQUIRE(g.constant(bf16, 1.0 / 3, {B, 2}).type_string() == "bf16[B, 2]");
  REQUIRE(constant_in(g).real == static_cast<double>(bfloat16(1.0 / 3)));
  REQUIRE(g.constant(boolean, true).type_string() == "bool[]");
  REQUIRE(error_of([&](auto& at) { at = here(), g.constant(i32, 0.25); }) ==
          "HERE: constant(0.25): the number 0.25 has a fraction and cannot be of type i32\n"
          "  hint: convert the tensor to a floating type first");
  const Tensor x = g.input("x", f32, {4});
  REQUIRE(error_of([&](auto& at) { at = here(), g.constant(f32, x); }) ==
          "HERE: constant(f32[4]): the value is a tensor\n"
          "  hint: give a number; broadcast_to repeats a tensor");
}

TEST_CASE("tensors of two types are not mixed", "[builder][scalar]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4}), y = g.input("y", f16, {4}), i = g.input("i", i32, {4});
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(x + y); }) ==
          "HERE: add(f32[4], f16[4]): operands have types f32 and f16\n"
          "  hint: convert one of them, as in convert(x, fuse::f32)");
  REQUIRE(code_of([&] { select(x > 0, x, i); }) == ErrorCode::dtype_mismatch);
  REQUIRE(error_of([&](auto& at) { at = here(), select(x, x, x); }) ==
          "HERE: select(f32[4], f32[4], f32[4]): the condition is no bool\n  hint: compare it, as in x != 0");
}
