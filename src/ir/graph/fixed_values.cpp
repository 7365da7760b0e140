// SPDX-License-Identifier: Apache-2.0
#include "ir/graph/fixed_values.hpp"

#include <algorithm>

namespace fuse::ir {
namespace {

bool is_static(const Node& node) {
  const auto constant = [](const Dim& dim) { return dim.is_constant(); };
  const std::vector<Dim> within = dims_of(node.attr);
  return std::all_of(node.type.dims.begin(), node.type.dims.end(), constant) &&
         std::all_of(within.begin(), within.end(), constant);
}

}  // namespace

std::vector<bool> fixed_values(const Graph& graph) {
  std::vector<bool> fixed(graph.nodes.size());
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const Node& node = graph[id];
    const Relation relation = info(node.op).relation;
    if (node.op == Op::input || relation == Relation::contraction || relation == Relation::custom) continue;
    fixed[id] = is_static(node) && std::all_of(node.operands.begin(), node.operands.end(),
                                               [&](NodeId operand) { return fixed[operand]; });
  }
  return fixed;
}

}  // namespace fuse::ir
