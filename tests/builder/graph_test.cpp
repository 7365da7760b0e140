// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "builder_support.hpp"

using namespace fuse;
using namespace fuse::test;

namespace {
/// A path that no other process uses.
std::string temporary_path(const std::string& name) {
  const std::string file = "fuse_" + std::to_string(getpid()) + "_" + name + ".fuse";
  return (std::filesystem::temp_directory_path() / file).string();
}
}  // namespace

TEST_CASE("names are unique and not empty", "[builder][names]") {
  Graph g;
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B});
  g.parameter("w", f32, {B});
  const std::string hint = "\n  hint: inputs, parameters and dims of a graph have different names";
  REQUIRE(error_of([&](auto& at) { at = here(), g.input("w", f32, {}); }) ==
          "HERE: input(): the name 'w' is taken by an input or a parameter" + hint);
  REQUIRE(error_of([&](auto& at) { at = here(), g.parameter("B", f32, {}); }) ==
          "HERE: parameter(): the name 'B' is taken by a dim" + hint);
  REQUIRE(error_of([&](auto& at) { at = here(), g.dim("x"); }) ==
          "HERE: dim(): the name 'x' is taken by an input or a parameter" + hint);
  REQUIRE(code_of([&] { g.dim("B"); }) == ErrorCode::duplicate_name);
  REQUIRE(error_of([&](auto& at) { at = here(), g.input("", f32, {}); }) ==
          "HERE: input(): a name is empty\n  hint: give it a name");
  REQUIRE(code_of([&] { g.parameter("", f32, {}); }) == ErrorCode::invalid_argument);
  REQUIRE(code_of([&] { g.dim(""); }) == ErrorCode::invalid_argument);

  g.output("x", x);  // outputs have names of their own
  REQUIRE(
      error_of([&](auto& at) { at = here(), g.output("x", x); }) ==
      "HERE: output(f32[B]): the name 'x' is taken by another output\n  hint: name each output differently");
  REQUIRE(code_of([&] { g.output("", x); }) == ErrorCode::invalid_argument);
  g.output("again", x);
  REQUIRE(ir_of(g).outputs.size() == 2);
}

TEST_CASE("a failed source leaves its name free", "[builder][names]") {
  Graph g;
  REQUIRE(code_of([&] { g.input("x", f32, {-4}); }) == ErrorCode::invalid_extent);
  REQUIRE(g.input("x", f32, {4}).rank() == 1);
}

TEST_CASE("the range of a dim is checked", "[builder][names]") {
  Graph g;
  REQUIRE(
      error_of([&](auto& at) { at = here(), g.dim("B", {.min = 5, .max = 4}); }) ==
      "HERE: dim(): the range [5, 4] of dim 'B' is not 0 <= min <= max\n  hint: an extent is not negative");
  REQUIRE(error_of([&](auto& at) {
            at = here(), g.dim("B", {.min = -1, .max = 4});
          }).starts_with("HERE: dim(): "));
  REQUIRE(error_of([&](auto& at) { at = here(), g.dim("B", {.min = 1, .max = 4, .hint = 8}); }) ==
          "HERE: dim(): the hint 8 of dim 'B' is outside its range [1, 4]\n"
          "  hint: give a likely value in the range, or 0 for none");
  REQUIRE(g.dim("B", {.min = 1, .max = 4, .hint = 4}).max() == 4);
}

TEST_CASE("tensors of two graphs are not mixed", "[builder][graph]") {
  Graph g("first"), h("second");
  const Tensor x = g.input("x", f32, {4}), y = h.input("y", f32, {4});
  const std::string tail =
      "operands belong to two graphs, 'first' and 'second'\n"
      "  hint: build all operands with one Graph; tensors stay with the original when a Graph is copied";
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(x + y); }) == "HERE: add(f32[4], f32[4]): " + tail);
  REQUIRE(error_of([&](auto& at) {
            at = here(), concat({x, y}, 0);
          }) == "HERE: concat(f32[4], f32[4]): " + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), layer_norm(x, y, x); }) ==
          "HERE: layer_norm(f32[4], f32[4], f32[4]): " + tail);
  REQUIRE(error_of([&](auto& at) { at = here(), g.output("y", y); }) ==
          "HERE: output(f32[4]): the tensor belongs to graph 'second', the output 'y' to graph 'first'\n"
          "  hint: tensors stay with the original when a Graph is copied");
  REQUIRE(code_of([&] { (void)(x + y); }) == ErrorCode::wrong_graph);
}

TEST_CASE("dims of another graph are refused", "[builder][graph]") {
  Graph g("first"), h("second");
  const Dim B = g.dim("B"), T = g.dim("T", {.min = 1, .max = 64});
  const std::string hint = "\n  hint: declare it with Graph::dim of the graph that uses it";
  REQUIRE(error_of([&](auto& at) {
            at = here(), h.input("x", f32, {4, B + 1});
          }) == "HERE: input(): dim 'B' was not declared in this graph" + hint);
  h.dim("T", {.min = 1, .max = 32});
  REQUIRE(error_of([&](auto& at) { at = here(), h.input("x", f32, {T}); }) ==
          "HERE: input(): dim 'T' is of another graph: its range [1, 64] is [1, 32] in this graph" + hint);
  const Tensor y = h.input("y", f32, {1, 8});
  REQUIRE(code_of([&] { broadcast_to(y, {B, 8}); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { slice(y, 1, 0, B); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { h.dim_size(B); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { h.iota(i32, {B}, 0); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { h.constant(i32, 1, {B}); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { h.input("z", f32, {Dim::index("i", 4)}); }) == ErrorCode::wrong_graph);
}

TEST_CASE("a copy has nodes of its own", "[builder][graph]") {
  Graph g("g");
  const Dim B = g.dim("B");
  const Tensor x = g.input("x", f32, {B});
  g.output("x", x);
  const auto open = g.scope("open");
  Graph copy(g);
  REQUIRE(copy.to_string() == g.to_string());
  REQUIRE(code_of([&] { copy.output("y", x); }) == ErrorCode::wrong_graph);
  REQUIRE(code_of([&] { copy.input("x", f32, {}); }) == ErrorCode::duplicate_name);
  REQUIRE(code_of([&] { copy.dim("B"); }) == ErrorCode::duplicate_name);
  const Tensor y = copy.input("y", f32, {B});
  REQUIRE(code_of([&] { copy.output("x", y); }) == ErrorCode::duplicate_name);
  REQUIRE(last_node(copy).scope == 0);  // open scopes are not copied
  REQUIRE(ir_of(g).nodes.size() == 1);
  exp(x);
  REQUIRE(ir_of(g).scope_path(last_node(g).scope) == "open");

  Graph assigned;
  assigned = copy;
  REQUIRE(ir_of(assigned).nodes.size() == 2);
  Graph& self = assigned;
  assigned = self;
  REQUIRE(ir_of(assigned).nodes.size() == 2);
}

TEST_CASE("moving keeps tensors valid", "[builder][graph]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  Graph moved(std::move(g));
  moved.output("y", x + 1);
  REQUIRE(ir_of(moved).outputs.size() == 1);
  // NOLINTBEGIN: use after move is what is tested
  REQUIRE(error_of([&] { (void)g.name(); }) ==
          "a graph was used after it was moved from\n  hint: assign a graph to it first");
  REQUIRE(code_of([&] { g.input("x", f32, {}); }) == ErrorCode::invalid_argument);
  const Graph copy_of_nothing(g);
  g = Graph("again");
  REQUIRE(g.name() == "again");
  // NOLINTEND
}

TEST_CASE("a tensor keeps its graph alive", "[builder][graph]") {
  Tensor x;
  REQUIRE_FALSE(x.valid());
  {
    Graph g;
    x = g.input("x", f32, {4});
  }
  REQUIRE(x.valid());
  REQUIRE((x + 1).type_string() == "f32[4]");
}

TEST_CASE("an empty handle is refused", "[builder][graph]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4}), none;
  REQUIRE(error_of([&](auto& at) { at = here(), (void)(x + none); }) ==
          "HERE: add(f32[4], no tensor): an operand is a tensor handle that was never given a value\n"
          "  hint: make it with Graph::input, Graph::parameter or an operator");
  REQUIRE(code_of([&] { exp(none); }) == ErrorCode::invalid_argument);
  REQUIRE(code_of([&] { g.output("y", none); }) == ErrorCode::invalid_argument);
  REQUIRE(code_of([&] { (void)none.dims(); }) == ErrorCode::invalid_argument);
}

TEST_CASE("dims of a tensor stay while the graph grows", "[builder][graph]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4, 8});
  const auto& dims = x.dims();
  for (int i = 0; i < 1000; ++i) exp(x);
  REQUIRE(dims[1] == 8);
  REQUIRE(x.dim(-2) == 4);
  REQUIRE(error_of([&] { (void)x.dim(2); }) ==
          "dim(f32[4, 8]): axis 2 is out of range for rank 2\n  hint: a negative axis counts from the end");
}

TEST_CASE("text comes back as the graph", "[builder][graph]") {
  Graph g("block");
  const Dim B = g.dim("B", {.min = 1, .max = 64, .hint = 8});
  const Tensor x = g.input("x", bf16, {B, 16}), w = g.parameter("w", bf16, {16});
  g.output("y", rms_norm(x, w));
  Graph back = Graph::parse(g.to_string());
  REQUIRE(back.to_string() == g.to_string());
  REQUIRE(code_of([&] { back.input("w", f32, {}); }) == ErrorCode::duplicate_name);
  REQUIRE(code_of([&] { back.dim("B"); }) == ErrorCode::duplicate_name);
  REQUIRE(back.input("z", f32, {B}).rank() == 1);  // the same name and range: the same dim
}

TEST_CASE("a graph is loaded from a file", "[builder][graph]") {
  const std::string path = temporary_path("saved");
  Graph g("saved");
  g.output("y", exp(g.input("x", f32, {4})));
  std::ofstream(path) << g.to_string();
  REQUIRE(Graph::load(path).to_string() == g.to_string());
  std::filesystem::remove(path);
  REQUIRE(error_of([&] { Graph::load(path); }) ==
          path + ": the file cannot be opened\n  hint: check the path and its permissions");
  REQUIRE(code_of([] { Graph::load("/"); }) == ErrorCode::io);
}

TEST_CASE("a huge file is refused before it is read", "[builder][graph]") {
  const std::string path = temporary_path("huge");
  std::ofstream(path).close();
  std::filesystem::resize_file(path, (std::uintmax_t{1} << 30) + 1);  // sparse
  const std::string text = error_of([&] { Graph::load(path); });
  std::filesystem::remove(path);
  REQUIRE(text == path + ": the file has 1073741825 bytes, more than 1 GiB\n  hint: this is no .fuse file");
}
