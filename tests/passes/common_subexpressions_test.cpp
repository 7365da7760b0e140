// Equal nodes become one, and nothing that differs does.
// SPDX-License-Identifier: Apache-2.0
#include "passes/common_subexpressions.hpp"

#include "base/access.hpp"
#include "passes/dead_code.hpp"
#include "passes/pass_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// The values left of a body after the pass, without the duplicates that it leaves dead.
std::size_t left_of(const std::string& body, const std::string& params = "%x: f32[4, 4], %y: f32[4, 4]") {
  const std::string text = "graph @g(" + params + ") -> (o: f32[4, 4]) { " + body + " }";
  const ir::Graph graph = ir::parse(text, "cse");
  const ir::Graph after = ir::dead_code(ir::common_subexpressions(graph));
  return after.nodes.size() - signature_of(after).size();
}

}  // namespace

TEST_CASE("common_subexpressions does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("common_subexpressions", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("common_subexpressions", "After"));
  CHECK(print(ir::dead_code(ir::common_subexpressions(before))) == print(after));
}

TEST_CASE("common_subexpressions keeps the first with its scope, and leaves the duplicates", "[passes]") {
  const ir::Graph before = ir::parse(R"(graph @g(%x: f32[4], %unused: f32[4]) -> (y: f32[4], z: f32[4]) {
    scope first {
      %2 = constant {value = 0.5} : f32[]
      %3 = broadcast_in_dim %2 {dims = []} : f32[4]
      %4 = mul %x, %3 : f32[4]
    }
    scope second {
      %5 = constant {value = 0.5} : f32[]
      %6 = broadcast_in_dim %5 {dims = []} : f32[4]
      %7 = mul %x, %6 : f32[4]
      %8 = add %7, %4 : f32[4]
    }
    return y = %8, z = %7
  })",
                                     "cse");
  check_golden("passes/common_subexpressions.fuse", print(ir::common_subexpressions(before)));
}

TEST_CASE("common_subexpressions merges what is equal in op, operands, attribute and type", "[passes]") {
  CHECK(
      left_of("%2 = exp %x : f32[4, 4] %3 = exp %x : f32[4, 4] %4 = add %2, %3 : f32[4, 4] return o = %4") ==
      2);
  CHECK(
      left_of("%2 = exp %x : f32[4, 4] %3 = log %x : f32[4, 4] %4 = add %2, %3 : f32[4, 4] return o = %4") ==
      3);
  CHECK(
      left_of("%2 = exp %x : f32[4, 4] %3 = exp %y : f32[4, 4] %4 = add %2, %3 : f32[4, 4] return o = %4") ==
      3);
  CHECK(left_of("%2 = sub %x, %y : f32[4, 4] %3 = sub %y, %x : f32[4, 4] %4 = add %2, %3 : f32[4, 4] return "
                "o = %4") == 3);
  // Swapped operands of a sum and of a maximum.
  CHECK(left_of("%2 = add %x, %y : f32[4, 4] %3 = add %y, %x : f32[4, 4] %4 = sub %2, %3 : f32[4, 4] return "
                "o = %4") == 2);
  CHECK(left_of("%2 = max %x, %y : f32[4, 4] %3 = max %y, %x : f32[4, 4] %4 = sub %2, %3 : f32[4, 4] return "
                "o = %4") == 2);
  CHECK(left_of("%2 = transpose %x {dims = [1, 0]} : f32[4, 4] %3 = transpose %x {dims = [0, 1]} : f32[4, 4] "
                "%4 = add %2, %3 : f32[4, 4] return o = %4") == 3);
  CHECK(left_of("%2 = constant {value = 0.0} : f32[4, 4] %3 = constant {value = -0.0} : f32[4, 4] "
                "%4 = add %2, %3 : f32[4, 4] return o = %4") == 3);
  CHECK(left_of("%2 = constant {value = nan} : f32[4, 4] %3 = constant {value = nan} : f32[4, 4] "
                "%4 = add %2, %3 : f32[4, 4] return o = %4") == 2);
  // The type is part of it: a convert to another type, a broadcast to another shape.
  CHECK(left_of("%2 = convert %x : bf16[4, 4] %3 = convert %x : f16[4, 4] %4 = convert %2 : f32[4, 4] "
                "%5 = convert %3 : f32[4, 4] %6 = add %4, %5 : f32[4, 4] return o = %6") == 5);
}

TEST_CASE("common_subexpressions never merges inputs", "[passes]") {
  const std::string text = "%2 = add %x, %y : f32[4, 4] return o = %2";
  const ir::Graph graph =
      ir::parse("graph @g(%x: f32[4, 4], %y: f32[4, 4]) -> (o: f32[4, 4]) { " + text + " }", "in");
  CHECK(print(ir::common_subexpressions(graph)) == print(graph));
}

TEST_CASE("common_subexpressions compares symbolic shapes by value", "[passes]") {
  Graph g("symbols");
  const Dim B = g.dim("B"), T = g.dim("T");
  const Tensor x = g.input("x", f32, {B * T});
  g.output("o", exp(reshape(x, {B, T})) + exp(reshape(x, {B, T})));
  g.output("p", exp(reshape(x, {T, B})));
  const ir::Graph after = ir::dead_code(ir::common_subexpressions(ir_of(g)));
  CHECK(after.nodes.size() == 6);  // x, two reshapes, two exps, the sum
}

TEST_CASE("common_subexpressions keeps the meaning of random graphs", "[passes]") {
  check_pass_on_random_graphs(ir::common_subexpressions);
  std::size_t before = 0, after = 0;
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    const ir::Graph graph = ir::dead_code(random_graph(seed, 100));
    before += graph.nodes.size();
    after += ir::dead_code(ir::common_subexpressions(graph)).nodes.size();
  }
  CHECK(after < before);  // else the graphs test nothing
}

TEST_CASE("common_subexpressions of 100,000 nodes that differ in an attribute alone", "[passes]") {
  ir::Graph graph = ir::parse(
      "graph @g(%x: f32[200000]) -> (y: f32[2]) { "
      "%1 = slice %x {starts = [0], limits = [2], strides = [1]} : f32[2] return y = %1 }",
      "slices");
  for (std::int64_t i = 1; i < 100'000; ++i) {
    ir::Node node = graph[1];
    node.attr = ir::SliceAttr{{2 * i}, {2 * i + 2}, {1}};
    graph.nodes.push_back(node);
  }
  graph.nodes.push_back(graph.nodes.back());
  graph.outputs[0].node = static_cast<ir::NodeId>(graph.nodes.size() - 1);
  const ir::Graph after = ir::common_subexpressions(graph);
  CHECK(after.outputs[0].node == graph.nodes.size() - 2);  // the last of those that differ
}
