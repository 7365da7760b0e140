// Reshapes move after what a reduction's loops compute, where the dims allow it.
// SPDX-License-Identifier: Apache-2.0
#include "passes/sink_reshapes.hpp"

#include "passes/common_subexpressions.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

ir::Graph sunk(const ir::Graph& graph) {
  return ir::dead_code(ir::common_subexpressions(ir::sink_reshapes(graph)));
}

/// The reshapes of what is computed: those of inputs and parameters are views.
std::size_t reshapes(const ir::Graph& graph) {
  return static_cast<std::size_t>(
      std::count_if(graph.nodes.begin(), graph.nodes.end(), [&](const ir::Node& node) {
        return node.op == ir::Op::reshape && !ir::is_given(graph[node.operands[0]]);
      }));
}

/// Checks that a graph means the same after the pass, which leaves `left` reshapes of what is computed.
ir::Graph check_sunk(const Graph& g, std::size_t left) {
  const ir::Graph after = sunk(g.ir());
  ir::verify(after);
  INFO(print(after));
  CHECK(reshapes(after) == left);
  const bool same = outputs_of(after, 3) == outputs_of(g.ir(), 3);
  CHECK(same);
  CHECK(print(sunk(after)) == print(after));
  return after;
}

/// x less the maximum of its rows.
Tensor below_maximum(const Tensor& x) { return x - broadcast_to(reduce_max(x, {-1}, true), x.dims()); }

}  // namespace

TEST_CASE("sink_reshapes does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("sink_reshapes", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("sink_reshapes", "After"));
  CHECK(print(sunk(before)) == print(after));
}

TEST_CASE("a reshape passes ops, with constants, broadcasts and values of other operands", "[passes]") {
  Graph g("ops");
  const Tensor e = below_maximum(g.input("x", f32, {12, 10}));
  const Tensor apart = reshape(e, {3, 4, 2, 5});
  const Tensor rows = broadcast_in_dim(g.input("rows", f32, {3, 4}), {3, 4, 2, 5}, {0, 1});
  const Tensor columns = broadcast_in_dim(g.input("columns", f32, {2, 5}), {3, 4, 2, 5}, {2, 3});
  const Tensor other = exp(g.input("other", f32, {3, 4, 2, 5}));
  g.output("y", tanh(apart) * 2 * rows + columns - other);
  const ir::Graph after = check_sunk(g, 2);  // of the result, and of `other`
  CHECK(after[after.outputs[0].node].op == ir::Op::reshape);
}

TEST_CASE("a broadcast along a part of what are dims together keeps a reshape of it", "[passes]") {
  Graph g("part");
  const Tensor apart = reshape(below_maximum(g.input("x", f32, {12, 10})), {3, 4, 10});
  g.output("y", apart * broadcast_in_dim(g.input("z", f32, {4}), {3, 4, 10}, {1}));
  const ir::Graph after = check_sunk(g, 2);  // of the result, and of the broadcast
  CHECK(after[after.outputs[0].node].op == ir::Op::reshape);
}

TEST_CASE("a reduction of dims that the reshape keeps apart reduces the old ones", "[passes]") {
  Graph g("rows");
  const Tensor x = g.input("x", f32, {3, 4, 10});
  const Tensor flat = reshape(below_maximum(x), {12, 10});
  g.output("y", flat / broadcast_to(sum(flat, {1}, true), {12, 10}));
  const ir::Graph after = check_sunk(g, 1);
  for (const ir::Node& node : after.nodes) {
    if (node.op == ir::Op::reduce_sum) CHECK(after[node.operands[0]].type.dims.size() == 3);
  }
}

TEST_CASE("a reduction of a part of a dim, or for a position, stays after the reshape", "[passes]") {
  Graph g("part");
  const Tensor e = below_maximum(g.input("x", f32, {4, 10}));
  g.output("sums", sum(reshape(e, {4, 2, 5}), {2}));
  g.output("positions", argmax(reshape(e, {2, 2, 10}), 2));
  check_sunk(g, 2);
}

TEST_CASE("values of reductions with other loops meet where they did", "[passes]") {
  Graph g("two");
  const Tensor a = below_maximum(g.input("a", f32, {4, 10}));
  const Tensor b = below_maximum(g.input("b", f32, {8, 5}));
  const Tensor both = reshape(a, {8, 5}) * b;
  g.output("y", both);
  const ir::Graph after = check_sunk(g, 1);
  CHECK(after[after.outputs[0].node].op == ir::Op::mul);
}

TEST_CASE("a reshape of what no reduction made stays", "[passes]") {
  Graph g("alone");
  g.output("y", exp(reshape(tanh(g.input("x", f32, {12, 10})), {3, 4, 10})));
  CHECK(print(sunk(g.ir())) == print(g.ir()));
}

TEST_CASE("dims of unknown extents match by their products", "[passes]") {
  Graph g("symbols");
  const Dim a = g.dim("A", {.min = 1, .max = 64}), b = g.dim("B", {.min = 1, .max = 64}),
            n = g.dim("N", {.min = 1, .max = 512});
  const Tensor e = below_maximum(g.input("x", f32, {a * b, n}));
  g.output("split", exp(reshape(e, {a, b, n})));
  const Tensor f = below_maximum(g.input("z", f32, {n, a, b}));
  g.output("merged", f * 2 + reshape(exp(reshape(f, {n * a, b})), {n, a, b}));
  const ir::Graph after = sunk(g.ir());
  ir::verify(after);
  INFO(print(after));
  CHECK(reshapes(after) == 1);
}

TEST_CASE("values without elements keep their reshapes", "[passes]") {
  Graph g("empty");
  const Tensor e = below_maximum(g.input("x", f32, {0, 10}));
  g.output("y", exp(reshape(e, {0, 5, 2})));
  const ir::Graph after = sunk(g.ir());
  ir::verify(after);
  CHECK(after.outputs[0].name == "y");
  CHECK(after[after.outputs[0].node].type.dims == std::vector<Dim>{0, 5, 2});
}
