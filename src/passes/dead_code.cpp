// SPDX-License-Identifier: Apache-2.0
#include "passes/dead_code.hpp"

namespace fuse::ir {

Graph dead_code(const Graph& graph) {
  std::vector<bool> live(graph.nodes.size());
  for (const Output& output : graph.outputs) live[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    if (is_given(graph[id])) live[id] = true;
    if (!live[id]) continue;
    for (NodeId operand : graph[id].operands) live[operand] = true;
  }
  Graph result = graph;
  result.nodes.clear();
  std::vector<NodeId> renumbered(graph.nodes.size());
  // Inputs and parameters first, as the text form numbers them.
  for (const bool given : {true, false}) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      if (!live[id] || is_given(graph[id]) != given) continue;
      renumbered[id] = static_cast<NodeId>(result.nodes.size());
      result.nodes.push_back(graph[id]);
      for (NodeId& operand : result.nodes.back().operands) operand = renumbered[operand];
    }
  }
  renumber_outputs(result, renumbered);
  return result;
}

}  // namespace fuse::ir
