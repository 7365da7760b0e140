// SPDX-License-Identifier: Apache-2.0
#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

const Dim B = Dim::symbol("B", {}), T = Dim::symbol("T", {.min = 4});

}  // namespace

TEST_CASE("broadcast_in_dim repeats an extent of 1", "[ir][infer]") {
  const auto broadcast = [](std::vector<Dim> from, std::vector<std::int64_t> dims, Type to) {
    return rule(Op::broadcast_in_dim, {{f32, std::move(from)}}, DimsAttr{std::move(dims)}, std::move(to));
  };
  REQUIRE(broadcast({}, {}, {f32, {B, 8}}) == "f32[B, 8]");
  REQUIRE(broadcast({B, 1}, {0, 2}, {f32, {B, 4, 8}}) == "f32[B, 4, 8]");
  REQUIRE(broadcast({B}, {0}, {f32, {4}}) ==
          "broadcast_in_dim(f32[B]): operand dim 0 of extent B cannot become dim 0 of extent 4\n"
          "  hint: an extent must be 1 or equal");
  REQUIRE(broadcast({4, 8}, {1, 0}, {f32, {8, 4}}) ==
          "broadcast_in_dim(f32[4, 8]): dims [1, 0] do not increase\n  hint: name each dim once, in order");
  REQUIRE(broadcast({4}, {}, {f32, {4}}) ==
          "broadcast_in_dim(f32[4]): the list has 0 dims, the operand's rank is 1\n"
          "  hint: name a dim of the result for each dim of the operand");
  REQUIRE(broadcast({4}, {1}, {f32, {4}}) ==
          "broadcast_in_dim(f32[4]): axis 1 is out of range for rank 1\n  hint: axes are 0 to 0");
  REQUIRE(broadcast({4}, {0}, {f64, {4}}) ==
          "broadcast_in_dim(f32[4]): the result is stated as f64\n"
          "  hint: this op keeps the operand's dtype; convert changes it");
}

TEST_CASE("reshape keeps the number of elements", "[ir][infer]") {
  const auto reshape = [](std::vector<Dim> from, std::vector<Dim> to) {
    return rule(Op::reshape, {{f32, std::move(from)}}, NoAttr{}, Type{f32, std::move(to)});
  };
  REQUIRE(reshape({B, 4, T}, {T, 2 * B, 2}) == "f32[T, 2 * B, 2]");
  REQUIRE(reshape({0, B}, {T, 0}) == "f32[T, 0]");
  REQUIRE(reshape({B, 6}, {B, 5}) ==
          "reshape(f32[B, 6]): element counts differ: 6 * B and 5 * B\n"
          "  hint: that of the operand is 6 * B, that of f32[B, 5] is 5 * B");
  const std::vector<Dim> sums(6, B * T + B + T);
  REQUIRE(reshape(sums, {4}).find("is too long an expression") == std::string::npos);
  std::vector<Dim> many;
  for (char name = 'a'; name <= 'z'; ++name) many.push_back(Dim::symbol(std::string(1, name), {}) + 1);
  REQUIRE(reshape(many, {4}).find("the number of elements is too long an expression") != std::string::npos);
  const Dim large = Dim(std::int64_t{1} << 40) * B;
  REQUIRE(rule(Op::reshape, {{f32, {large, large}}}, NoAttr{}, Type{f32, {4}})
              .find("arithmetic on extents overflows") != std::string::npos);
}

TEST_CASE("transpose takes a permutation", "[ir][infer]") {
  const Type x{f32, {B, 4, 8}};
  REQUIRE(rule(Op::transpose, {x}, DimsAttr{{2, 0, 1}}) == "f32[8, B, 4]");
  REQUIRE(rule(Op::transpose, {{f32, {}}}, DimsAttr{}) == "f32[]");
  const std::string hint = " are no permutation of rank 3\n  hint: name each dim of the operand once";
  REQUIRE(rule(Op::transpose, {x}, DimsAttr{{0, 0, 1}}) == "transpose(f32[B, 4, 8]): dims [0, 0, 1]" + hint);
  REQUIRE(rule(Op::transpose, {x}, DimsAttr{{0, 1}}) == "transpose(f32[B, 4, 8]): dims [0, 1]" + hint);
  REQUIRE(rule(Op::transpose, {x}, DimsAttr{{0, 1, 3}}) ==
          "transpose(f32[B, 4, 8]): axis 3 is out of range for rank 3\n  hint: axes are 0 to 2");
}

TEST_CASE("slice stays within the operand", "[ir][infer]") {
  const auto slice = [](Dim extent, Dim start, Dim limit, std::int64_t stride) {
    return rule(Op::slice, {{f32, {extent}}}, SliceAttr{{start}, {limit}, {stride}});
  };
  REQUIRE(slice(10, 1, 9, 3) == "f32[3]");
  REQUIRE(slice(B, 0, B, 1) == "f32[B]");
  REQUIRE(slice(T, 3, T, 2) == "f32[T / 2 - 1]");
  REQUIRE(slice(10, 5, 4, 1) ==
          "slice(f32[10]): in dim 0, limit 4 is below start 5\n"
          "  hint: 0 <= start <= limit <= extent must hold");
  REQUIRE(slice(10, -1, 4, 1).starts_with("slice(f32[10]): in dim 0, start -1 is below 0"));
  REQUIRE(slice(10, 0, 11, 1).starts_with("slice(f32[10]): in dim 0, extent 10 is below limit 11"));
  REQUIRE(slice(B, 3, B, 1) ==
          "slice(f32[B]): in dim 0, limit B is not known to be at least start 3\n"
          "  hint: declare ranges of the dims from which 0 <= start <= limit <= extent follows");
  REQUIRE(slice(10, 0, 4, 0) == "slice(f32[10]): the stride of dim 0 is 0\n  hint: a stride is 1 or more");
  REQUIRE(rule(Op::slice, {{f32, {4, 4}}}, SliceAttr{{0}, {4, 4}, {1, 1}}) ==
          "slice(f32[4, 4]): the lists have 1 start, 2 limits and 2 strides, the operand's rank is 2\n"
          "  hint: give one of each a dim");
}

TEST_CASE("concat adds the extents of its axis", "[ir][infer]") {
  REQUIRE(rule(Op::concat, {{f32, {B, 4}}, {f32, {T, 4}}, {f32, {2, 4}}}, AxisAttr{0}) ==
          "f32[B + T + 2, 4]");
  REQUIRE(rule(Op::concat, {{f32, {4, 8}}, {f32, {5, 8}}}, AxisAttr{1}) ==
          "concat(f32[4, 8], f32[5, 8]): extents differ in dim 0: 4 and 5\n"
          "  hint: only the extents of axis 1 may differ");
  REQUIRE(rule(Op::concat, {{f32, {4}}, {f64, {4}}}, AxisAttr{0})
              .starts_with("concat(f32[4], f64[4]): operands have types f32 and f64"));
  REQUIRE(rule(Op::concat, {{f32, {4}}, {f32, {4, 4}}}, AxisAttr{0})
              .starts_with("concat(f32[4], f32[4, 4]): ranks differ: 1 and 2"));
  REQUIRE(rule(Op::concat, {{f32, {}}}, AxisAttr{0}).starts_with("concat(f32[]): axis 0 is out of range"));
}

TEST_CASE("gather replaces its axis by the dims of the indices", "[ir][infer]") {
  REQUIRE(rule(Op::gather, {{f16, {B, 4, 8}}, {i32, {3, T}}}, AxisAttr{1}) == "f16[B, 3, T, 8]");
  REQUIRE(rule(Op::gather, {{f16, {4}}, {i64, {}}}, AxisAttr{0}) == "f16[]");
  REQUIRE(rule(Op::gather, {{f32, {4}}, {f32, {3}}}, AxisAttr{0}) ==
          "gather(f32[4], f32[3]): the indices are f32\n  hint: indices are i32 or i64");
  REQUIRE(rule(Op::gather, {{f32, {4, 0}}, {i64, {3}}}, AxisAttr{1}) ==
          "gather(f32[4, 0], i64[3]): the extent of axis 1 is 0\n"
          "  hint: an index is clamped into the axis, which must hold an element");
  REQUIRE(rule(Op::gather, {{f32, {4}}, {i64, {3}}}, AxisAttr{1})
              .starts_with("gather(f32[4], i64[3]): axis 1 is out of range for rank 1"));
  const Type wide{f32, std::vector<Dim>(32, Dim(1))};
  REQUIRE(rule(Op::gather, {wide, {i64, {1, 1}}}, AxisAttr{0}).find("rank 33 is above 32") !=
          std::string::npos);
}
