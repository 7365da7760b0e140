// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/memory_values.hpp"

namespace fuse::ir {

std::vector<bool> memory_values(const Graph& graph) {
  std::vector<bool> needed(graph.nodes.size());
  for (const Output& output : graph.outputs) needed[output.node] = true;
  for (NodeId id = static_cast<NodeId>(graph.nodes.size()); id-- > 0;) {
    const Relation relation = info(graph[id].op).relation;
    const bool opaque = relation == Relation::contraction || relation == Relation::custom;
    if (!opaque && !(relation == Relation::reshape && needed[id])) continue;
    for (const NodeId operand : graph[id].operands) needed[operand] = true;
  }
  return needed;
}

}  // namespace fuse::ir
