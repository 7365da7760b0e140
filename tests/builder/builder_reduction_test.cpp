// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {
std::vector<std::int64_t> axes_of(const Graph& g, ir::NodeId node) {
  return ir::attr<ir::DimsAttr>(ir_of(g)[node]).dims;
}
}  // namespace

TEST_CASE("axes are counted from either end and sorted", "[builder][reduction]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B, 4, 8});
  REQUIRE(sum(x, {-1, 0}).type_string() == "f32[4]");
  REQUIRE(axes_of(g, 1) == std::vector<std::int64_t>{0, 2});
  REQUIRE(prod(x).type_string() == "f32[]");
  REQUIRE(axes_of(g, 2) == std::vector<std::int64_t>{0, 1, 2});
  REQUIRE(max(x, {1}).type_string() == "f32[B, 8]");
  REQUIRE(min(x, {1, 2}).type_string() == "f32[B]");
}

TEST_CASE("keep_dims leaves extents 1", "[builder][reduction]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B, 4, 8});
  REQUIRE(sum(x, {1}, {.keep_dims = true}).type_string() == "f32[B, 1, 8]");
  REQUIRE(trace(g, 1) == "reduce_sum(%0) f32[B, 8]; reshape(%1) f32[B, 1, 8]");
  REQUIRE(sum(x, {}, {.keep_dims = true}).type_string() == "f32[1, 1, 1]");
  REQUIRE(argmin(x, -1, {.keep_dims = true}).type_string() == "i64[B, 4, 1]");
}

TEST_CASE("a scalar is its own reduction", "[builder][reduction]") {
  Graph g;
  const Tensor s = g.input("s", i32, {});
  REQUIRE(sum(s).type_string() == "i32[]");
  REQUIRE(ir_of(g).nodes.size() == 1);
  const Tensor b = g.input("b", boolean, {});
  REQUIRE(error_of([&](auto& at) { at = here(), sum(b); }) ==
          "HERE: sum(bool[]): a bool is no number\n  hint: convert the operand to i32 first");
}

TEST_CASE("mean divides by the number of elements", "[builder][reduction]") {
  Graph g;
  const Dim B = g.dim("B");
  SECTION("a power of two has an exact reciprocal") {
    mean(g.input("x", f32, {3, 4, 8}), {1, 2});
    REQUIRE(trace(g, 1) ==
            "reduce_sum(%0) f32[3]; constant() f32[]; broadcast_in_dim(%2) f32[3]; mul(%1, %3) f32[3]");
    REQUIRE(ir::attr<ir::ConstantAttr>(ir_of(g)[2]).real == 1.0 / 32);
  }
  SECTION("another number divides") {
    mean(g.input("x", f64, {3, 10}));
    REQUIRE(trace(g, 1) == "reduce_sum(%0) f64[]; constant() f64[]; div(%1, %2) f64[]");
    REQUIRE(ir::attr<ir::ConstantAttr>(ir_of(g)[2]).real == 30);
  }
  SECTION("nothing has no mean") {
    mean(g.input("x", f32, {0}));
    REQUIRE(trace(g, 1) == "reduce_sum(%0) f32[]; constant() f32[]; div(%1, %2) f32[]");
  }
  SECTION("a symbolic extent is read at run time") {
    mean(g.input("x", f32, {B, 4, 2}), {0, 1}, {.keep_dims = true});
    REQUIRE(trace(g, 1) ==
            "reduce_sum(%0) f32[2]; dim_size() i64[]; convert(%2) f32[]; broadcast_in_dim(%3) f32[2]; "
            "div(%1, %4) f32[2]; reshape(%5) f32[1, 1, 2]");
    REQUIRE(ir::attr<ir::DimAttr>(ir_of(g)[2]).dim == 4 * B);
  }
  SECTION("integers have none") {
    const Tensor i = g.input("i", i32, {4});
    REQUIRE(error_of([&](auto& at) { at = here(), mean(i); }) ==
            "HERE: mean(i32[4]): the mean of i32 is no i32\n  hint: convert the operand to f32 first");
  }
}

TEST_CASE("axes out of range and named twice are refused", "[builder][reduction]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), s = g.input("s", f32, {});
  REQUIRE(error_of([&](auto& at) { at = here(), sum(x, {2}); }) ==
          "HERE: sum(f32[4, 8]): axis 2 is out of range for rank 2\n  hint: axes are -2 to 1");
  REQUIRE(error_of([&](auto& at) { at = here(), max(x, {-3}); }) ==
          "HERE: max(f32[4, 8]): axis -3 is out of range for rank 2\n  hint: axes are -2 to 1");
  REQUIRE(error_of([&](auto& at) {
            at = here(), prod(x, {1, -1});
          }) ==
          "HERE: prod(f32[4, 8]): axis 1 is named twice\n"
          "  hint: name each axis once; a negative axis counts from the end");
  REQUIRE(error_of([&](auto& at) { at = here(), argmax(s, 0); }) ==
          "HERE: argmax(f32[]): axis 0 is out of range for rank 0\n  hint: a scalar has no axes");
  REQUIRE(code_of([&] { sum(x, {std::numeric_limits<std::int64_t>::min()}); }) ==
          ErrorCode::invalid_argument);
}
