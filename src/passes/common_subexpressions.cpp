// SPDX-License-Identifier: Apache-2.0
#include "passes/common_subexpressions.hpp"

#include <unordered_map>
#include <variant>

#include "ir/dims/dim_poly.hpp"
#include "ir/graph/hash.hpp"

namespace fuse::ir {
namespace {

bool commutes(const Node& node) { return info(node.op).has(Trait::commutative); }

/// Equality decides.
std::uint64_t hash_of(const Node& node) {
  Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(node.op)).add(node.attr).add(node.type);
  // Either way round, where the op does not mind.
  const bool swap = commutes(node) && node.operands[0] > node.operands[1];
  for (std::size_t i = 0; i < node.operands.size(); ++i) hasher.add(node.operands[swap ? 1 - i : i]);
  return hasher.value();
}

/// A sum or product rounds alike either way round. Where both operands are NaN, which of the two comes out is
/// open.
bool same_operands(const Node& a, const Node& b) {
  if (a.operands == b.operands) return true;
  return commutes(a) && a.operands[0] == b.operands[1] && a.operands[1] == b.operands[0];
}

bool same(const Node& a, const Node& b) {
  return a.op == b.op && same_operands(a, b) && a.type == b.type && a.attr == b.attr;
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
    if (is_given(node)) continue;
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
