// SPDX-License-Identifier: Apache-2.0
#include "passes/split_concats.hpp"

#include <algorithm>

namespace fuse::ir {
namespace {

constexpr std::size_t max_width = 32;

}  // namespace

Graph split_concats(const Graph& graph) {
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
    while (info(node.op).relation == Relation::concat && node.operands.size() > max_width) {
      const auto axis = static_cast<std::size_t>(attr<AxisAttr>(node).axis);
      std::vector<NodeId> parts;
      for (std::size_t first = 0; first < node.operands.size(); first += max_width) {
        const auto begin = node.operands.begin() + static_cast<std::ptrdiff_t>(first);
        Node part = node;
        part.operands.assign(
            begin, begin + static_cast<std::ptrdiff_t>(std::min(max_width, node.operands.size() - first)));
        part.type.dims[axis] = 0;
        for (NodeId operand : part.operands) {
          part.type.dims[axis] = part.type.dims[axis] + result.nodes[operand].type.dims[axis];
        }
        parts.push_back(add(std::move(part)));
      }
      node.operands = std::move(parts);
    }
    renumbered[id] = add(std::move(node));
  }
  renumber_outputs(result, renumbered);
  return result;
}

}  // namespace fuse::ir
