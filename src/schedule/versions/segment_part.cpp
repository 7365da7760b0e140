// SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/segment_part.hpp"

#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// The nodes of the segment and all that they have as operands, in order.
std::set<NodeId> wanted_nodes(const ir::Graph& graph, const Segment& segment) {
  std::set<NodeId> wanted(segment.nodes.begin(), segment.nodes.end());
  wanted.insert(segment.inputs.begin(), segment.inputs.end());
  for (const NodeId id : segment.nodes) wanted.insert(graph[id].operands.begin(), graph[id].operands.end());
  return wanted;
}

class Renumbering {
 public:
  explicit Renumbering(std::unordered_map<NodeId, NodeId> to) : to_(std::move(to)) {}
  void one(NodeId& id) const { id = to_.at(id); }
  void all(std::vector<NodeId>& ids) const {
    for (NodeId& id : ids) one(id);
  }
  void phase(Phase& phase) const {
    one(phase.root);
    all(phase.nodes);
    all(phase.inputs);
    all(phase.results);
    for (Stage& stage : phase.stages) {
      one(stage.root);
      if (stage.maximum) one(*stage.maximum);
    }
    for (Overwrite& each : phase.overwrites) {
      one(each.result);
      one(each.input);
    }
  }

 private:
  std::unordered_map<NodeId, NodeId> to_;
};

}  // namespace

SegmentPart part_of(const ir::Graph& graph, const Segment& segment) {
  SegmentPart part{.graph = {}, .segment = segment};
  part.graph.name = graph.name;
  part.graph.symbols = graph.symbols;
  part.graph.assumptions = graph.assumptions;
  for (ir::Assumption& each : part.graph.assumptions) each.location = 0;
  const std::unordered_set<NodeId> inside(segment.nodes.begin(), segment.nodes.end());
  std::unordered_map<NodeId, NodeId> to;
  for (const NodeId id : wanted_nodes(graph, segment)) {
    ir::Node node = graph[id];
    node.scope = 0;
    node.location = 0;
    if (!inside.contains(id) && !ir::is_given(node) && node.op != ir::Op::constant) {
      node.op = ir::Op::input;
      node.attr = ir::NameAttr{"v" + std::to_string(id)};
      node.operands.clear();
    }
    for (NodeId& operand : node.operands) operand = to.at(operand);
    to.emplace(id, static_cast<NodeId>(part.graph.nodes.size()));
    part.graph.nodes.push_back(std::move(node));
  }
  const Renumbering renumber(std::move(to));
  renumber.one(part.segment.root);
  renumber.all(part.segment.nodes);
  renumber.all(part.segment.inputs);
  renumber.all(part.segment.results);
  for (Phase& phase : part.segment.phases) renumber.phase(phase);
  for (const NodeId result : part.segment.results)
    part.graph.outputs.push_back({.name = "r" + std::to_string(result), .node = result});
  return part;
}

}  // namespace fuse::schedule
