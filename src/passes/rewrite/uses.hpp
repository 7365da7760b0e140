// How often values are used. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// For each node, the number of operands and outputs that it is.
inline std::vector<std::uint32_t> use_counts(const Graph& graph) {
  std::vector<std::uint32_t> uses(graph.nodes.size());
  for (const Node& node : graph.nodes) {
    for (NodeId operand : node.operands) ++uses[operand];
  }
  for (const Output& output : graph.outputs) ++uses[output.node];
  return uses;
}

}  // namespace fuse::ir
