// SPDX-License-Identifier: Apache-2.0
#include "analysis/guards.hpp"
#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {
const ir::DimsAttr& dims_of(const Graph& g, ir::NodeId node) {
  return ir::attr<ir::DimsAttr>(ir_of(g)[node]);
}
}  // namespace

TEST_CASE("equal shapes need no broadcast", "[builder][broadcast]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B, 8}), y = g.input("y", f32, {B, 8});
  const Tensor z = x + y;
  REQUIRE(z.type_string() == "f32[B, 8]");
  REQUIRE(trace(g, 2) == "add(%0, %1) f32[B, 8]");
}

TEST_CASE("missing dims and extents 1 repeat through one node an operand", "[builder][broadcast]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8});
  SECTION("a row") {
    const Tensor row = g.input("row", f32, {8});
    (void)(x * row);
    REQUIRE(trace(g, 2) == "broadcast_in_dim(%1) f32[4, 8]; mul(%0, %2) f32[4, 8]");
    REQUIRE(dims_of(g, 2).dims == std::vector<std::int64_t>{1});
  }
  SECTION("a column, on the left") {
    const Tensor column = g.input("column", f32, {4, 1});
    (void)(column - x);
    REQUIRE(trace(g, 2) == "broadcast_in_dim(%1) f32[4, 8]; sub(%2, %0) f32[4, 8]");
    REQUIRE(dims_of(g, 2).dims == std::vector<std::int64_t>{0, 1});
  }
  SECTION("both sides") {
    const Tensor a = g.input("a", f32, {4, 1}), b = g.input("b", f32, {3, 1, 8});
    maximum(a, b);
    REQUIRE(trace(g, 3) ==
            "broadcast_in_dim(%1) f32[3, 4, 8]; broadcast_in_dim(%2) f32[3, 4, 8]; max(%3, %4) f32[3, 4, 8]");
    REQUIRE(dims_of(g, 3).dims == std::vector<std::int64_t>{1, 2});
    REQUIRE(dims_of(g, 4).dims == std::vector<std::int64_t>{0, 1, 2});
  }
  SECTION("a scalar") {
    const Tensor s = g.input("s", f32, {});
    (void)(x / s);
    REQUIRE(trace(g, 2) == "broadcast_in_dim(%1) f32[4, 8]; div(%0, %2) f32[4, 8]");
    REQUIRE(dims_of(g, 2).dims.empty());
  }
  SECTION("the three operands of select") {
    const Tensor c = g.input("c", boolean, {4, 1}), y = g.input("y", f32, {8});
    select(c, x, y);
    REQUIRE(trace(g, 3) ==
            "broadcast_in_dim(%1) bool[4, 8]; broadcast_in_dim(%2) f32[4, 8]; select(%3, %0, %4) f32[4, 8]");
  }
}

TEST_CASE("an extent 1 repeats to 0 and to a symbol", "[builder][broadcast]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor one = g.input("one", f32, {1});
  REQUIRE((one + g.input("none", f32, {0})).type_string() == "f32[0]");
  REQUIRE((one + g.input("many", f32, {B * 2})).type_string() == "f32[2 * B]");
}

TEST_CASE("symbolic extents that may be equal are accepted, for a guard to check", "[builder][broadcast]") {
  Graph g;
  const Dim B = g.dim("B"), T = g.dim("T");
  const Tensor x = g.input("x", f32, {B * T}), same = g.input("same", f32, {T * B});
  REQUIRE((x + same).type_string() == "f32[B * T]");
  REQUIRE(analysis::guards_of(ir_of(g)).empty());
  const Tensor b = g.input("b", f32, {B, 4}), t = g.input("t", f32, {T, 4});
  const Tensor sum = b + t;
  REQUIRE(sum.type_string() == "f32[B, 4]");
  REQUIRE(broadcast_to(t, {2, B, 4}).type_string() == "f32[2, B, 4]");
  g.output("y", sum);
  const std::vector<ir::Guard> guards = analysis::guards_of(ir_of(g));
  REQUIRE(guards.size() == 1);
  REQUIRE(guards[0].relation.to_string() == "T = B");
  REQUIRE(guards[0].location.file == "broadcast_test.cpp");
}

TEST_CASE("symbolic extents that cannot be equal are refused", "[builder][broadcast]") {
  Graph g;
  const Dim B = g.dim("B", {.min = 1, .max = 8}), T = g.dim("T", {.min = 9, .max = 20});
  const Tensor b = g.input("b", f32, {B, 4}), t = g.input("t", f32, {T, 4});
  const std::string text = error_of([&](auto& at) { at = here(), (void)(b + t); });
  REQUIRE(text ==
          "HERE: add(f32[B, 4], f32[T, 4]): extents B and T of dim -2 differ\n"
          "  hint: shapes align at the right; extents must be equal or 1");
  REQUIRE(code_of([&] { (void)(b + g.input("odd", f32, {2 * B + 7, 4})); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { (void)(g.input("m", f32, {2 * B}) + g.input("n", f32, {2 * T + 1})); }) ==
          ErrorCode::shape_mismatch);
}

TEST_CASE("extents that differ are refused", "[builder][broadcast]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), y = g.input("y", f32, {2, 3});
  const std::string text = error_of([&](auto& at) { at = here(), (void)(x * y); });
  REQUIRE(text ==
          "HERE: mul(f32[4, 8], f32[2, 3]): extents 8 and 3 of dim -1 differ\n"
          "  hint: shapes align at the right; extents must be equal or 1");
  REQUIRE(code_of([&] { (void)(x * y); }) == ErrorCode::shape_mismatch);
  REQUIRE(ir_of(g).nodes.size() == 2);  // nothing was added
}

TEST_CASE("broadcast_to repeats as operators do", "[builder][broadcast]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {1, 8});
  REQUIRE(broadcast_to(x, {B, 4, 8}).type_string() == "f32[B, 4, 8]");
  REQUIRE(dims_of(g, 1).dims == std::vector<std::int64_t>{1, 2});
  broadcast_to(x, {1, 8});
  REQUIRE(ir_of(g).nodes.size() == 2);  // the same shape: no node
  REQUIRE(error_of([&](auto& at) {
            at = here(), broadcast_to(x, {4, 4});
          }) ==
          "HERE: broadcast_to(f32[1, 8]): the operand does not broadcast to f32[4, 4]\n"
          "  hint: shapes align at the right; an extent of the operand must be 1 or equal");
  REQUIRE(code_of([&] { broadcast_to(x, {8}); }) == ErrorCode::shape_mismatch);
}

TEST_CASE("broadcast_in_dim places operand dims", "[builder][broadcast]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  REQUIRE(broadcast_in_dim(x, {4, 8}, {0}).type_string() == "f32[4, 8]");
  REQUIRE(broadcast_in_dim(x, {8, 4}, {-1}).type_string() == "f32[8, 4]");
  REQUIRE(dims_of(g, 2).dims == std::vector<std::int64_t>{1});
  REQUIRE(error_of([&](auto& at) {
            at = here(), broadcast_in_dim(x, {4, 8}, {2});
          }) ==
          "HERE: broadcast_in_dim(f32[4]): axis 2 is out of range for rank 2\n  hint: axes are -2 to 1");
  REQUIRE(code_of([&] { broadcast_in_dim(x, {3, 8}, {0}); }) == ErrorCode::shape_mismatch);
}
