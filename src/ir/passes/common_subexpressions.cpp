// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/common_subexpressions.hpp"

#include <unordered_map>

#include "ir/hash.hpp"

namespace fuse::ir {
namespace {

/// Equality decides.
std::uint64_t hash_of(const Node& node) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(node.op)).add(node.attr).add(node.type);
  for (const NodeId operand : node.operands) hasher.add(operand);
  return hasher.value();
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && a.type == b.type && a.attr == b.attr;
}

}  // namespace

Graph common_subexpressions(const Graph& graph) {
  Graph result = graph;
  std::vector<NodeId> kept(graph.nodes.size());
  std::unordered_multimap<std::uint64_t, NodeId> seen;
  for (NodeId id = 0; id < result.nodes.size(); ++id) {
    Node& node = result.nodes[id];
    for (NodeId& operand : node.operands) operand = kept[operand];
    kept[id] = id;
    if (std::holds_alternative<NameAttr>(node.attr)) continue;
    const std::uint64_t hash = hash_of(node);
    const auto [first, last] = seen.equal_range(hash);
    for (auto candidate = first; candidate != last; ++candidate) {
      if (same(result.nodes[candidate->second], node)) {
        kept[id] = candidate->second;
        break;
      }
    }
    if (kept[id] == id) seen.emplace(hash, id);
  }
  renumber_outputs(result, kept);
  return result;
}

}  // namespace fuse::ir
