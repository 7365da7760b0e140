// What a graph says about its extents: its assumptions, and what its ops need.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "analysis/facts.hpp"
#include "ir/graph/infer.hpp"

namespace fuse::analysis {
namespace {

struct ByForm {
  bool operator()(const DimRelation& a, const DimRelation& b) const {
    if (a.kind != b.kind) return a.kind < b.kind;
    return std::pair(compare(a.left, b.left), compare(a.right, b.right)) < std::pair(0, 0);
  }
};

std::vector<bool> live_nodes(const ir::Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) live[output.node] = true;
  for (ir::NodeId id = static_cast<ir::NodeId>(graph.nodes.size()); id-- > 0;) {
    if (!live[id]) continue;
    for (const ir::NodeId operand : graph[id].operands) live[operand] = true;
  }
  return live;
}

/// What distinguishes relations: 1 <= N is 0 <= N - 1.
DimRelation form_of(const DimRelation& relation) {
  if (relation.kind != DimRelation::Kind::at_most) return relation;
  try {
    return at_most(0, relation.right - relation.left);
  } catch (const Error&) {  // beyond 63 bits: as it is written
    return relation;
  }
}

}  // namespace

std::vector<Constraint> constraints_of(const ir::Graph& graph) {
  std::vector<Constraint> result;
  std::set<DimRelation, ByForm> seen;
  for (const ir::Assumption& assumption : graph.assumptions) {
    if (seen.insert(form_of(assumption.relation)).second) {
      result.push_back({assumption.relation, graph.locations[assumption.location], {}});
    }
  }
  if (graph.symbols.empty()) return result;
  const std::vector<bool> live = live_nodes(graph);
  std::vector<ir::Type> operands;
  std::vector<DimRelation> needs;
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (!live[id]) continue;
    const ir::Node& node = graph[id];
    operands.clear();
    for (const ir::NodeId operand : node.operands) operands.push_back(graph[operand].type);
    needs.clear();
    ir::infer_type(node.op, operands, node.attr, &node.type, graph.location(node), &needs);
    for (DimRelation& relation : needs) {
      if (!seen.insert(form_of(relation)).second) continue;
      result.push_back({std::move(relation), graph.location(node),
                        fmt::format("{} {}", to_string(node.op), graph.value_name(id))});
    }
  }
  return result;
}

Facts facts_of(const ir::Graph& graph) { return Facts(graph.symbols, constraints_of(graph)); }

}  // namespace fuse::analysis
