// SPDX-License-Identifier: Apache-2.0
#include <limits>

#include "ir_support.hpp"

using namespace fuse;
using namespace fuse::ir_test;

namespace {

std::string constant(DType dtype, ConstantAttr value) {
  return rule(Op::constant, {}, value, Type{dtype, {}});
}
std::string input(std::vector<Dim> dims) {
  return rule(Op::input, {}, NameAttr{"x"}, Type{f32, std::move(dims)});
}

}  // namespace

TEST_CASE("inputs and parameters take the stated type", "[ir][infer]") {
  REQUIRE(input({Dim::symbol("B", {}), 4}) == "f32[B, 4]");
  REQUIRE(rule(Op::parameter, {}, NameAttr{"w"}, Type{DType::boolean, {0}}) == "bool[0]");
  REQUIRE(rule(Op::input, {}, NameAttr{"x"}) ==
          "input(): the type of the result is not stated\n"
          "  hint: the operands of this op do not determine it");
}

TEST_CASE("extents are not negative and their product fits", "[ir][infer]") {
  REQUIRE(input({4, -1}) == "input(): the extent -1 of dim 1 is negative\n  hint: an extent is 0 or more");
  const Dim B = Dim::symbol("B", {.min = 1, .max = 4});
  REQUIRE(input({B - 5}) == "input(): the extent B - 5 of dim 0 is negative\n  hint: an extent is 0 or more");
  REQUIRE(input({B - 2}) ==
          "input(): the extent B - 2 of dim 0 may be negative\n"
          "  hint: declare ranges of its dims that keep it at 0 or more");
  REQUIRE(input({B - 1}) == "f32[B - 1]");
  const Dim N = Dim::symbol("N", {});
  REQUIRE(input({N - N / 4 * 4}).starts_with("f32["));  // proven, although its bounds alone allow -1
  const std::int64_t large = std::int64_t{1} << 31;
  REQUIRE(input({large, large}) == "f32[2147483648, 2147483648]");
  REQUIRE(input({large, large + 1}) ==
          "input(): the extents of f32[2147483648, 2147483649] multiply to more than 2^62\n"
          "  hint: use smaller extents");
  REQUIRE(input({0, large, large, 2}).find("multiply to more than 2^62") != std::string::npos);
  REQUIRE(input({large, large, Dim::symbol("T", {.min = 2})}).find("2^62") != std::string::npos);
  REQUIRE(input({std::numeric_limits<std::int64_t>::max()}).find("2^62") != std::string::npos);
}

TEST_CASE("the rank is at most 32", "[ir][infer]") {
  REQUIRE(input(std::vector<Dim>(32, Dim(1))).starts_with("f32["));
  REQUIRE(input(std::vector<Dim>(33, Dim(1))) ==
          "input(): rank 33 is above 32\n  hint: merge dims with reshape");
}

TEST_CASE("a constant is a value of its type", "[ir][infer]") {
  REQUIRE(constant(f32, {.real = 0.5}) == "f32[]");
  REQUIRE(constant(f16, {.real = 65504}) == "f16[]");
  REQUIRE(constant(f64, {.real = 0.1}) == "f64[]");
  REQUIRE(constant(bf16, {.real = std::numeric_limits<double>::infinity()}) == "bf16[]");
  REQUIRE(constant(f32, {.real = std::numeric_limits<double>::quiet_NaN()}) == "f32[]");
  REQUIRE(constant(i32, {.real = 0, .integer = -2147483648}) == "i32[]");
  REQUIRE(constant(DType::boolean, {.real = 0, .integer = 1}) == "bool[]");
  REQUIRE(constant(f32, {.real = 0.1}) ==
          "constant(): the value 0.1 is not exact in f32\n  hint: round it to the type first");
  REQUIRE(constant(f32, {.real = 1e300}).starts_with("constant(): the value 1e+300 is not exact in f32"));
  REQUIRE(constant(f16, {.real = 65505}).starts_with("constant(): the value 65505 is not exact in f16"));
  REQUIRE(constant(bf16, {.real = 257}).starts_with("constant(): the value 257 is not exact in bf16"));
  REQUIRE(constant(i32, {.real = 0, .integer = 2147483648}) ==
          "constant(): the value 2147483648 does not fit in i32\n  hint: it holds -2147483648 to 2147483647");
  REQUIRE(constant(DType::boolean, {.real = 0, .integer = 2}) ==
          "constant(): the value 2 does not fit in bool\n  hint: a bool is 0 or 1");
}

TEST_CASE("iota counts along an axis", "[ir][infer]") {
  REQUIRE(rule(Op::iota, {}, AxisAttr{1}, Type{f64, {2, 3}}) == "f64[2, 3]");
  REQUIRE(rule(Op::iota, {}, AxisAttr{0}, Type{f16, {2}}) ==
          "iota(): coordinates cannot be of type f16\n  hint: use an integer type, f32 or f64 and convert");
  REQUIRE(rule(Op::iota, {}, AxisAttr{0}, Type{DType::boolean, {2}})
              .starts_with("iota(): coordinates cannot be of type bool"));
  REQUIRE(rule(Op::iota, {}, AxisAttr{2}, Type{i32, {2, 3}}) ==
          "iota(): axis 2 is out of range for rank 2\n  hint: axes are 0 to 1");
}

TEST_CASE("dim_size is i64[]", "[ir][infer]") {
  REQUIRE(rule(Op::dim_size, {}, DimAttr{4}) == "i64[]");
  REQUIRE(rule(Op::dim_size, {}, DimAttr{4}, Type{i32, {}}) ==
          "dim_size(): the result is stated as i32[]\n  hint: it is i64[]");
}
