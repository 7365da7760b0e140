// SPDX-License-Identifier: Apache-2.0
#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

const Type f{f32, {4}}, h{f16, {4}}, b{DType::boolean, {4}}, i{i32, {4}}, l{i64, {4}}, d{f64, {4}};

}  // namespace

TEST_CASE("element-wise ops keep the type of their operands", "[ir][infer]") {
  REQUIRE(rule(Op::add, {f, f}) == "f32[4]");
  REQUIRE(rule(Op::rem, {l, l}) == "i64[4]");
  REQUIRE(rule(Op::exp, {d}) == "f64[4]");
  REQUIRE(rule(Op::lt, {i, i}) == "bool[4]");
  REQUIRE(rule(Op::logical_and, {b, b}) == "bool[4]");
  const Dim B = Dim::symbol("B", {}), T = Dim::symbol("T", {});
  REQUIRE(rule(Op::mul, {{f32, {B * T}}, {f32, {T * B}}}) == "f32[B * T]");
}

TEST_CASE("equality takes bool too, but no halves", "[ir][infer]") {
  REQUIRE(rule(Op::eq, {l, l}) == "bool[4]");
  REQUIRE(rule(Op::eq, {h, h}) ==
          "eq(f16[4], f16[4]): the op is not defined for f16\n  hint: convert to f32 first");
  REQUIRE(rule(Op::ne, {b, b}) == "bool[4]");
}

TEST_CASE("element-wise ops refuse other operand classes", "[ir][infer]") {
  REQUIRE(rule(Op::add, {h, h}) ==
          "add(f16[4], f16[4]): the op is not defined for f16\n  hint: convert to f32 first");
  REQUIRE(rule(Op::neg, {{bf16, {}}}) ==
          "neg(bf16[]): the op is not defined for bf16\n  hint: convert to f32 first");
  REQUIRE(rule(Op::add, {b, b}) ==
          "add(bool[4], bool[4]): the op is not defined for bool\n  hint: convert to i32 first");
  REQUIRE(rule(Op::sqrt, {i}) ==
          "sqrt(i32[4]): the op is not defined for i32\n  hint: convert to f32 or f64 first");
  REQUIRE(rule(Op::sqrt, {b}) ==
          "sqrt(bool[4]): the op is not defined for bool\n  hint: convert to f32 first");
  REQUIRE(rule(Op::logical_not, {f}) ==
          "logical_not(f32[4]): the op is not defined for f32\n  hint: compare first: this op takes bool");
}

TEST_CASE("element-wise operands have one type", "[ir][infer]") {
  REQUIRE(rule(Op::add, {f, d}) ==
          "add(f32[4], f64[4]): operands have types f32 and f64\n  hint: convert one of them");
  REQUIRE(rule(Op::add, {{f32, {8, 1024}}, {f32, {8, 512}}}) ==
          "add(f32[8, 1024], f32[8, 512]): extents differ in dim 1: 1024 and 512\n"
          "  hint: reshape, slice or broadcast_in_dim makes them equal");
  const Dim B = Dim::symbol("B", {}), T = Dim::symbol("T", {});
  REQUIRE(rule(Op::eq, {{f32, {B}}, {f32, {T}}}) ==
          "eq(f32[B], f32[T]): extents differ in dim 0: B and T\n"
          "  hint: symbolic extents must be the same expression; declare one dim for both");
  REQUIRE(rule(Op::max, {{f32, {4, 8}}, {f32, {8}}}) ==
          "max(f32[4, 8], f32[8]): ranks differ: 2 and 1\n"
          "  hint: repeat the smaller operand with broadcast_in_dim first");
}

TEST_CASE("the number and the attributes of operands are checked", "[ir][infer]") {
  REQUIRE(rule(Op::add, {f}) == "add(f32[4]): the op has 1 operand\n  hint: it takes 2");
  REQUIRE(rule(Op::concat, {}, AxisAttr{0}) ==
          "concat(): the op has 0 operands\n  hint: it takes one or more");
  REQUIRE(rule(Op::add, {f, f}, AxisAttr{0}) ==
          "add(f32[4], f32[4]): the attributes are those of another op\n  hint: it has no attributes");
  REQUIRE(rule(Op::reduce_sum, {f}) ==
          "reduce_sum(f32[4]): the attributes are those of another op\n  hint: it has the attribute dims");
}

TEST_CASE("a stated type agrees with the inferred one", "[ir][infer]") {
  REQUIRE(rule(Op::add, {f, f}, NoAttr{}, f) == "f32[4]");
  REQUIRE(rule(Op::add, {f, f}, NoAttr{}, Type{f32, {5}}) ==
          "add(f32[4], f32[4]): the result is stated as f32[5]\n  hint: it is f32[4]");
  REQUIRE(thrown_code([] {
            const Type types[] = {f, f};
            infer_type(Op::add, types, NoAttr{}, &d, {});
          }) == ErrorCode::dtype_mismatch);
}

TEST_CASE("select takes bool, T, T", "[ir][infer]") {
  REQUIRE(rule(Op::select, {b, h, h}) == "f16[4]");
  REQUIRE(rule(Op::select, {i, f, f}) ==
          "select(i32[4], f32[4], f32[4]): the condition is i32, not bool\n"
          "  hint: compare it with a value first");
  REQUIRE(rule(Op::select, {b, f, d}) ==
          "select(bool[4], f32[4], f64[4]): operands have types f32 and f64\n  hint: convert one of them");
  REQUIRE(rule(Op::select, {{DType::boolean, {}}, f, f})
              .starts_with("select(bool[], f32[4], f32[4]): ranks differ: 0 and 1"));
}

TEST_CASE("convert keeps the extents", "[ir][infer]") {
  REQUIRE(rule(Op::convert, {b}, NoAttr{}, Type{bf16, {4}}) == "bf16[4]");
  REQUIRE(rule(Op::convert, {f}) ==
          "convert(f32[4]): the type of the result is not stated\n"
          "  hint: the operands of this op do not determine it");
  REQUIRE(rule(Op::convert, {f}, NoAttr{}, Type{f64, {5}})
              .starts_with("convert(f32[4]): extents differ in dim 0: 4 and 5"));
}
