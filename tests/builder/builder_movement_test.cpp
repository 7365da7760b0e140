// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

TEST_CASE("reshape finds the extent -1", "[builder][movement]") {
  Graph g;
  const Dim B = g.dim("B"), T = g.dim("T");
  const Tensor x = g.input("x", f32, {B, 4, T});
  REQUIRE(reshape(x, {-1}).type_string() == "f32[4 * B * T]");
  REQUIRE(reshape(x, {B, -1}).dim(1) == 4 * T);
  REQUIRE(reshape(x, {-1, 2, 2 * T}).dim(0) == B);
  REQUIRE(reshape(x, {T, B, -1}).dim(2) == 4);
  REQUIRE(reshape(x, {B, 4, T, -1}).dim(3) == 1);
  REQUIRE(reshape(g.input("s", f32, {}), {-1, 1}).type_string() == "f32[1, 1]");
}

TEST_CASE("reshape to the same shape is no op", "[builder][movement]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8});
  reshape(x, {4, -1});
  REQUIRE(ir_of(g).nodes.size() == 1);
}

TEST_CASE("an extent -1 that is not determined is refused", "[builder][movement]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B, 6}), none = g.input("none", f32, {0, 4});
  REQUIRE(error_of([&](auto& at) {
            at = here(), reshape(g.input("odd", f32, {2 * B + 1}), {-1, 4});
          }) ==
          "HERE: reshape(f32[2 * B + 1]): the extent -1 is not determined: 2 * B + 1 is not known to be a "
          "multiple "
          "of 4\n"
          "  hint: state the extent");
  REQUIRE(reshape(x, {-1, 4}).type_string() == "f32[(3 * B) / 2, 4]");  // a guard checks that it comes out
  REQUIRE(error_of([&](auto& at) {
            at = here(), reshape(x, {-1, -1});
          }) == "HERE: reshape(f32[B, 6]): more than one extent is -1\n  hint: state all extents but one");
  REQUIRE(code_of([&] { reshape(none, {0, -1}); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { reshape(x, {B, 5}); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { reshape(x, {-2, -3, B}); }) != ErrorCode::ok);
}

TEST_CASE("axes of movements are counted from either end", "[builder][movement]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B, 4, 8}), i = g.input("i", i64, {3, 2});
  REQUIRE(transpose(x, {-1, 0, 1}).type_string() == "f32[8, B, 4]");
  REQUIRE(slice(x, -1, 1, 8, 3).type_string() == "f32[B, 4, 3]");
  REQUIRE(concat({x, x}, -3).type_string() == "f32[2 * B, 4, 8]");
  REQUIRE(gather(x, i, -2).type_string() == "f32[B, 3, 2, 8]");
  REQUIRE(g.iota(i32, {B, 4}, -1).type_string() == "i32[B, 4]");
  REQUIRE(ir::attr<ir::AxisAttr>(last_node(g)).axis == 1);
}

TEST_CASE("slice leaves the other axes whole", "[builder][movement]") {
  Graph g;
  const Dim B = g.dim("B", {.min = 2});
  const Tensor x = g.input("x", f32, {B, 8});
  slice(x, 0, 1, B, 1);
  const auto& attr = ir::attr<ir::SliceAttr>(last_node(g));
  REQUIRE(attr.starts == std::vector<Dim>{1, 0});
  REQUIRE(attr.limits == std::vector<Dim>{B, 8});
  REQUIRE(attr.strides == std::vector<std::int64_t>{1, 1});
}

TEST_CASE("axes of movements out of range are refused", "[builder][movement]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8}), i = g.input("i", i64, {3});
  const std::string tail = " is out of range for rank 2\n  hint: axes are -2 to 1";
  REQUIRE(error_of([&](auto& at) {
            at = here(), transpose(x, {0, 2});
          }) == "HERE: transpose(f32[4, 8]): axis 2" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), slice(x, 2, 0, 1); }) ==
          "HERE: slice(f32[4, 8]): axis 2" + tail);
  REQUIRE(error_of([&](auto& at) {
            at = here(), concat({x, x}, -3);
          }) == "HERE: concat(f32[4, 8], f32[4, 8]): axis -3" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), gather(x, i, 5); }) ==
          "HERE: gather(f32[4, 8], i64[3]): axis 5" + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), concat({}, 0); }) ==
          "HERE: concat(): the list of tensors is empty\n  hint: give one tensor or more");
  REQUIRE(code_of([&] { transpose(x, {0, 0}); }) == ErrorCode::invalid_argument);
  REQUIRE(code_of([&] { transpose(x, {0}); }) == ErrorCode::invalid_argument);
  REQUIRE(code_of([&] { slice(x, 0, 0, 5); }) != ErrorCode::ok);
  REQUIRE(code_of([&] { g.iota(i32, {4}, 1); }) == ErrorCode::invalid_argument);
}

TEST_CASE("matmul has the shapes of its flags", "[builder][movement]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor a = g.input("a", f32, {B, 4, 8}), b = g.input("b", f32, {B, 8, 2}),
               c = g.input("c", f32, {B, 2, 8});
  REQUIRE(matmul(a, b).type_string() == "f32[B, 4, 2]");
  REQUIRE(matmul(a, c, {.transpose_b = true}).type_string() == "f32[B, 4, 2]");
  REQUIRE(matmul(a, a, {.transpose_a = true}).type_string() == "f32[B, 8, 8]");
  const std::string text = error_of([&](auto& at) { at = here(), matmul(a, a); });
  REQUIRE(text.starts_with("HERE: matmul(f32[B, 4, 8], f32[B, 4, 8]): "));
  REQUIRE(code_of([&] { matmul(a, a); }) == ErrorCode::shape_mismatch);
  REQUIRE(code_of([&] { matmul(a, b, {.result = i32}); }) == ErrorCode::dtype_mismatch);
}
