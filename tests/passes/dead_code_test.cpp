// Dead code goes, the signature stays.
// SPDX-License-Identifier: Apache-2.0
#include "passes/dead_code.hpp"

#include "passes/pass_support.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("dead_code does what its header shows", "[passes]") {
  const ir::Graph before = parse_snippet(header_snippet("dead_code", "Before"));
  const ir::Graph after = parse_snippet(header_snippet("dead_code", "After"));
  CHECK(before.nodes.size() > after.nodes.size());
  CHECK(print(ir::dead_code(before)) == print(after));
}

TEST_CASE("dead_code keeps unused inputs and parameters, and removes chains with their scopes' ops",
          "[passes]") {
  const ir::Graph before =
      ir::parse(R"(graph @g(%x: f32[4], %unused: f32[2], param %w: f32[4]) -> (y: f32[4]) {
    scope a {
      %3 = exp %x : f32[4]
      scope b { %4 = reduce_sum %3 {dims = [0]} : f32[] }
      %5 = neg %x : f32[4]
    }
    %6 = broadcast_in_dim %4 {dims = []} : f32[4]
    %7 = add %5, %x : f32[4]
    return y = %7
  })",
                "dead");
  check_golden("passes/dead_code.fuse", print(ir::dead_code(before)));
}

TEST_CASE("dead_code leaves a graph that is an input alone", "[passes]") {
  const ir::Graph before =
      ir::parse("graph @g(%x: f32[4]) -> (y: f32[4], z: f32[4]) { return y = %x, z = %x }", "id");
  CHECK(print(ir::dead_code(before)) == print(before));
}

TEST_CASE("dead_code keeps the meaning of random graphs", "[passes]") {
  check_pass_on_random_graphs(ir::dead_code);
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    INFO("seed " << seed);
    const ir::Graph after = ir::dead_code(random_graph(seed, 60));
    std::vector<bool> used(after.nodes.size());
    for (const ir::Output& output : after.outputs) used[output.node] = true;
    for (const ir::Node& node : after.nodes) {
      for (const ir::NodeId operand : node.operands) used[operand] = true;
    }
    for (ir::NodeId id = 0; id < after.nodes.size(); ++id) {
      CHECK((used[id] || std::holds_alternative<ir::NameAttr>(after[id].attr)));
    }
  }
}

TEST_CASE("dead_code of 200,000 dead ops", "[passes]") {
  ir::Graph graph =
      ir::parse("graph @g(%x: f32[4]) -> (y: f32[4]) { %1 = exp %x : f32[4] return y = %1 }", "deep");
  for (ir::NodeId id = 1; id < fewer<ir::NodeId>(200'000); ++id) {
    ir::Node node = graph[1];
    node.operands = {id};
    graph.nodes.push_back(node);
  }
  CHECK(ir::dead_code(graph).nodes.size() == 2);
  graph.outputs[0].node = static_cast<ir::NodeId>(graph.nodes.size() - 1);
  CHECK(ir::dead_code(graph).nodes.size() == graph.nodes.size());
}
