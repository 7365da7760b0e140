// Broadcasts and reshapes to the operand's own type go away, and no others.
// SPDX-License-Identifier: Apache-2.0
#include "passes/drop_broadcasts.hpp"

#include <algorithm>

#include "base/access.hpp"
#include "passes/canonical_dims.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::size_t count(const ir::Graph& graph, ir::Relation relation) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(),
                    [&](const ir::Node& n) { return info(n.op).relation == relation; }));
}

ir::Graph dropped(const Graph& g) {
  const ir::Graph after = ir::dead_code(ir::drop_broadcasts(ir::canonical_dims(ir_of(g))));
  ir::verify(after);
  return after;
}

}  // namespace

TEST_CASE("drop_broadcasts does what its header shows", "[passes][facts]") {
  const ir::Graph before =
      ir::parse(R"(graph @g(%x: f32[B, 4], %y: f32[B, 4]) -> (z: f32[B, 4]) where B in [1, 64]
    { %2 = broadcast_in_dim %y {dims = [0, 1]} : f32[B, 4] %3 = reshape %2 : f32[B, 4]
      %4 = add %x, %3 : f32[B, 4] return z = %4 })",
                "before");
  const ir::Graph after =
      ir::parse(R"(graph @g(%x: f32[B, 4], %y: f32[B, 4]) -> (z: f32[B, 4]) where B in [1, 64]
    { %2 = add %x, %y : f32[B, 4] return z = %2 })",
                "after");
  CHECK(print(ir::dead_code(ir::drop_broadcasts(before))) == print(after));
}

TEST_CASE("a broadcast between dims that are equal by a fact goes away", "[passes][facts]") {
  for (const bool assumed : {false, true}) {
    Graph g("g");
    const Dim B = g.dim("B"), T = g.dim("T"), K = g.dim("K");
    const Tensor x = g.input("x", f32, {B, 4}), y = g.input("y", f32, {T, 4});
    if (assumed) g.assume(equal(B, T));
    if (assumed) g.assume(equal(K, 1));
    g.output("z", x + y);
    g.output("w", broadcast_to(g.input("k", f32, {K, 3}), {1, 3}) * 2);
    CHECK(count(ir_of(g), ir::Relation::broadcast) == 3);  // of y, of k and of the number 2
    const ir::Graph after = dropped(g);
    CHECK(count(after, ir::Relation::broadcast) == 1);
  }
}

TEST_CASE("a broadcast that repeats or may repeat stays", "[passes][facts]") {
  Graph g("g");
  const Dim B = g.dim("B", {.min = 1, .max = 9});
  const Tensor one = g.input("one", f32, {1}), row = g.input("row", f32, {4}),
               wide = g.input("wide", f32, {B});
  g.output("a", broadcast_to(one, {B}) + wide);
  g.output("b", broadcast_in_dim(row, {4, 4}, {0}) + broadcast_in_dim(row, {4, 4}, {1}));
  g.output("c", reshape(g.input("m", f32, {2, 6}), {6, 2}) * 2);
  const ir::Graph after = dropped(g);
  CHECK(count(after, ir::Relation::broadcast) == count(ir_of(g), ir::Relation::broadcast));
  CHECK(count(after, ir::Relation::reshape) == 1);
}

TEST_CASE("drop_broadcasts keeps the meaning of random graphs", "[passes][facts]") {
  check_pass_on_random_graphs(ir::drop_broadcasts);
}
