// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/kept_values.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace fuse::ir {

std::vector<NodeId> live_values(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size(), false);
  for (const Output& output : graph.outputs) live[output.node] = true;
  for (std::size_t id = graph.nodes.size(); id-- > 0;) {
    if (!live[id]) continue;
    for (const NodeId operand : graph.nodes[id].operands) live[operand] = true;
  }
  std::vector<NodeId> values;
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    if (live[id]) values.push_back(id);
  }
  return values;
}

Graph with_kept(const Graph& graph, const std::vector<NodeId>& values) {
  Graph kept = graph;
  for (const NodeId value : values) {
    kept.outputs.push_back({.name = kept_name(graph, value), .node = value});
  }
  return kept;
}

std::string kept_name(const Graph& graph, NodeId value) {
  std::string name = fmt::format("value {}", value);
  const auto is_taken = [&](const Output& output) { return output.name == name; };
  while (std::any_of(graph.outputs.begin(), graph.outputs.end(), is_taken)) name += '\'';
  return name;
}

std::string describe_value(const Graph& graph, NodeId value) {
  const std::string scope = graph.scope_path(graph[value].scope);
  return fmt::format("{} = {} {}{}{}", graph.value_name(value), to_string(graph[value].op),
                     to_string(graph[value].type), scope.empty() ? "" : " in ", scope);
}

}  // namespace fuse::ir
