// SPDX-License-Identifier: Apache-2.0
#include "passes/narrow_slices.hpp"

#include <optional>
#include <utility>

namespace fuse::ir {
namespace {

/// The operands of a concat that a slice reads, and where along the axis the first of them begins.
struct Part {
  std::vector<NodeId> operands{};
  Dim begin = 0;
};

/// None where that is all of them, or is not known.
std::optional<Part> read_part(const Graph& graph, const Node& concat, const Dim& start, const Dim& limit) {
  const auto axis = static_cast<std::size_t>(attr<AxisAttr>(concat).axis);
  Part part;
  Dim end = 0;
  for (const NodeId operand : concat.operands) {
    const Dim begin = end;
    end = end + graph[operand].type.dims[axis];
    if (proven_le(end, start) && part.operands.empty()) continue;
    if (!part.operands.empty() && proven_le(limit, begin)) break;
    if (part.operands.empty()) {
      if (!proven_le(begin, start)) return std::nullopt;
      part.begin = begin;
    }
    part.operands.push_back(operand);
  }
  if (part.operands.empty() || part.operands.size() == concat.operands.size()) return std::nullopt;
  return part;
}

/// The end of the last element that a slice takes, which a stride may leave before its limit.
Dim end_of(const SliceAttr& slice, std::size_t axis, const Dim& count) {
  // The limit as it is written: an equal expression of another form may prove less.
  if (slice.strides[axis] == 1 || !count.is_constant() || count.is(0)) return slice.limits[axis];
  return slice.starts[axis] + (count - 1) * slice.strides[axis] + 1;
}

}  // namespace

Graph narrow_slices(const Graph& graph) {
  Graph result = graph;
  result.nodes.clear();
  std::vector<NodeId> renumbered(graph.nodes.size());
  const auto add = [&](Node node) {
    result.nodes.push_back(std::move(node));
    return static_cast<NodeId>(result.nodes.size() - 1);
  };
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    Node node = graph[id];
    for (NodeId& operand : node.operands) operand = renumbered[operand];
    // A part of a part of a stack: each time of fewer operands.
    while (node.op == Op::slice && result.nodes[node.operands[0]].op == Op::concat) {
      const Node concat = result.nodes[node.operands[0]];
      const auto axis = static_cast<std::size_t>(attr<AxisAttr>(concat).axis);
      auto& slice = std::get<SliceAttr>(node.attr);
      const Dim limit = end_of(slice, axis, node.type.dims[axis]);
      std::optional<Part> part = read_part(result, concat, slice.starts[axis], limit);
      if (!part) break;
      slice.starts[axis] = slice.starts[axis] - part->begin;
      slice.limits[axis] = limit - part->begin;
      if (part->operands.size() == 1) {
        node.operands = std::move(part->operands);
        continue;
      }
      Node narrow = concat;
      narrow.type.dims[axis] = 0;
      for (const NodeId operand : part->operands)
        narrow.type.dims[axis] = narrow.type.dims[axis] + result.nodes[operand].type.dims[axis];
      narrow.operands = std::move(part->operands);
      node.operands = {add(std::move(narrow))};
    }
    renumbered[id] = add(std::move(node));
  }
  renumber_outputs(result, renumbered);
  return result;
}

}  // namespace fuse::ir
