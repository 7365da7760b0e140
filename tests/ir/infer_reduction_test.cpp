// SPDX-License-Identifier: Apache-2.0
#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

TEST_CASE("a reduction keeps the other dims", "[ir][infer]") {
  const Dim B = Dim::symbol("B", {});
  const Type x{f32, {B, 4, 8}};
  REQUIRE(rule(Op::reduce_sum, {x}, DimsAttr{{1}}) == "f32[B, 8]");
  REQUIRE(rule(Op::reduce_max, {x}, DimsAttr{{0, 1, 2}}) == "f32[]");
  REQUIRE(rule(Op::reduce_min, {{i32, {0, 3}}}, DimsAttr{{0}}) == "i32[3]");
  REQUIRE(rule(Op::argmax, {x}, DimsAttr{{0}}) == "i64[4, 8]");
}

TEST_CASE("reduced dims are sorted, unique and in range", "[ir][infer]") {
  const Type x{f32, {4, 8}};
  REQUIRE(rule(Op::reduce_sum, {x}, DimsAttr{{1, 0}}) ==
          "reduce_sum(f32[4, 8]): dims [1, 0] do not increase\n  hint: name each dim once, in order");
  REQUIRE(rule(Op::reduce_sum, {x}, DimsAttr{{1, 1}})
              .starts_with("reduce_sum(f32[4, 8]): dims [1, 1] do not increase"));
  REQUIRE(rule(Op::reduce_prod, {x}, DimsAttr{{2}}) ==
          "reduce_prod(f32[4, 8]): axis 2 is out of range for rank 2\n  hint: axes are 0 to 1");
  REQUIRE(rule(Op::reduce_prod, {x}, DimsAttr{{-1}})
              .starts_with("reduce_prod(f32[4, 8]): axis -1 is out of range for rank 2"));
  REQUIRE(rule(Op::reduce_sum, {{f32, {}}}, DimsAttr{{0}}) ==
          "reduce_sum(f32[]): axis 0 is out of range for rank 0\n  hint: a scalar has no axes");
  REQUIRE(rule(Op::reduce_sum, {x}, DimsAttr{}) ==
          "reduce_sum(f32[4, 8]): no dim is reduced\n  hint: name one dim or more, or use the operand");
}

TEST_CASE("reductions refuse halves and bool", "[ir][infer]") {
  REQUIRE(rule(Op::reduce_sum, {{bf16, {4}}}, DimsAttr{{0}}) ==
          "reduce_sum(bf16[4]): the op is not defined for bf16\n  hint: convert to f32 first");
  REQUIRE(rule(Op::argmin, {{DType::boolean, {4}}}, DimsAttr{{0}}) ==
          "argmin(bool[4]): the op is not defined for bool\n  hint: convert to i32 first");
}

TEST_CASE("argmax reduces one dim that is not empty", "[ir][infer]") {
  REQUIRE(rule(Op::argmax, {{f32, {4, 8}}}, DimsAttr{{0, 1}}) ==
          "argmax(f32[4, 8]): 2 dims are reduced\n  hint: reduce exactly one dim; reshape merges dims");
  REQUIRE(rule(Op::argmin, {{f32, {4, 0}}}, DimsAttr{{1}}) ==
          "argmin(f32[4, 0]): the reduced dim 1 is empty\n"
          "  hint: an empty dim has no largest or smallest element");
  const Dim none = Dim::symbol("N", {.min = 0, .max = 0});
  REQUIRE(rule(Op::argmin, {{f32, {none}}}, DimsAttr{{0}})
              .starts_with("argmin(f32[N]): the reduced dim 0 is empty"));
}

TEST_CASE("matmul contracts the inner extents", "[ir][infer]") {
  const Dim B = Dim::symbol("B", {});
  const Type a{bf16, {B, 4, 8}}, b{bf16, {B, 8, 2}}, c{bf16, {B, 2, 8}};
  REQUIRE(rule(Op::matmul, {a, b}, MatmulAttr{}) == "bf16[B, 4, 2]");
  REQUIRE(rule(Op::matmul, {a, b}, MatmulAttr{}, Type{f32, {B, 4, 2}}) == "f32[B, 4, 2]");
  REQUIRE(rule(Op::matmul, {a, c}, MatmulAttr{false, true}) == "bf16[B, 4, 2]");
  REQUIRE(rule(Op::matmul, {b, a}, MatmulAttr{true, true}) == "bf16[B, 2, 4]");
  REQUIRE(rule(Op::matmul, {a, c}, MatmulAttr{}) ==
          "matmul(bf16[B, 4, 8], bf16[B, 2, 8]): contracted extents differ: 8 and 2\n"
          "  hint: transpose the second operand");
  REQUIRE(rule(Op::matmul, {{f32, {8, 4}}, {f32, {8, 2}}}, MatmulAttr{}) ==
          "matmul(f32[8, 4], f32[8, 2]): contracted extents differ: 4 and 8\n"
          "  hint: transpose the first operand");
  REQUIRE(rule(Op::matmul, {{f32, {5, 4}}, {f32, {8, 2}}}, MatmulAttr{}) ==
          "matmul(f32[5, 4], f32[8, 2]): contracted extents differ: 4 and 8\n"
          "  hint: the last extent of the first operand meets the last but one of the second");
}

TEST_CASE("matmul refuses other ranks, batches and types", "[ir][infer]") {
  const Type a{f32, {3, 4, 8}}, b{f32, {2, 8, 5}}, flat{f32, {8, 5}}, row{f32, {8}};
  REQUIRE(rule(Op::matmul, {row, flat}, MatmulAttr{}) ==
          "matmul(f32[8], f32[8, 5]): the ranks are 1 and 2\n"
          "  hint: both operands need a rank of 2 or more; reshape adds a dim of extent 1");
  REQUIRE(rule(Op::matmul, {a, flat}, MatmulAttr{}) ==
          "matmul(f32[3, 4, 8], f32[8, 5]): ranks differ: 3 and 2\n"
          "  hint: repeat the smaller operand with broadcast_in_dim first");
  REQUIRE(rule(Op::matmul, {a, b}, MatmulAttr{}) ==
          "matmul(f32[3, 4, 8], f32[2, 8, 5]): batch extents differ in dim 0: 3 and 2\n"
          "  hint: leading dims must be equal; broadcast_in_dim repeats them");
  REQUIRE(rule(Op::matmul, {{i32, {2, 2}}, {i32, {2, 2}}}, MatmulAttr{}) ==
          "matmul(i32[2, 2], i32[2, 2]): the op is not defined for i32\n  hint: convert to f32 or f64 first");
  REQUIRE(rule(Op::matmul, {{f32, {2, 2}}, {f16, {2, 2}}}, MatmulAttr{})
              .starts_with("matmul(f32[2, 2], f16[2, 2]): operands have types f32 and f16"));
  REQUIRE(rule(Op::matmul, {{f64, {2, 2}}, {f64, {2, 2}}}, MatmulAttr{}, Type{f32, {2, 2}}) ==
          "matmul(f64[2, 2], f64[2, 2]): the result is stated as f32\n"
          "  hint: it is the operands' type; convert it");
  REQUIRE(
      rule(Op::matmul, {{f16, {2, 2}}, {f16, {2, 2}}}, MatmulAttr{}, Type{f64, {2, 2}}) ==
      "matmul(f16[2, 2], f16[2, 2]): the result is stated as f64\n  hint: it is the operands' type or f32");
  REQUIRE(rule(Op::matmul, {{f16, {2, 2}}, {f16, {2, 2}}}, MatmulAttr{}, Type{f32, {2, 3}})
              .starts_with("matmul(f16[2, 2], f16[2, 2]): the result is stated as f32[2, 3]"));
}
