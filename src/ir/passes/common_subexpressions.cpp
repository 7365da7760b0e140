// SPDX-License-Identifier: Apache-2.0
#include "ir/passes/common_subexpressions.hpp"

#include <algorithm>
#include <bit>
#include <unordered_map>

namespace fuse::ir {
namespace {

void mix(std::size_t& hash, std::uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15u + (hash << 6) + (hash >> 2);
}

bool commutes(const Node& node) { return info(node.op).has(Trait::commutative); }

/// Of what is cheap to hash; equality decides.
std::size_t hash_of(const Node& node) {
  std::size_t hash = static_cast<std::size_t>(node.op);
  mix(hash, static_cast<std::uint64_t>(node.type.dtype));
  mix(hash, node.type.dims.size());
  if (commutes(node)) {
    mix(hash, std::min(node.operands[0], node.operands[1]));
    mix(hash, std::max(node.operands[0], node.operands[1]));
  } else {
    for (NodeId operand : node.operands) mix(hash, operand);
  }
  for (const Dim& dim : node.type.dims)
    mix(hash, dim.is_constant() ? static_cast<std::uint64_t>(dim.constant()) : ~0ull);
  if (const auto* constant = std::get_if<ConstantAttr>(&node.attr)) {
    mix(hash, std::bit_cast<std::uint64_t>(constant->real));
    mix(hash, static_cast<std::uint64_t>(constant->integer));
  }
  return hash;
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
  std::unordered_multimap<std::size_t, NodeId> seen;
  for (NodeId id = 0; id < result.nodes.size(); ++id) {
    Node& node = result.nodes[id];
    for (NodeId& operand : node.operands) operand = kept[operand];
    kept[id] = id;
    if (std::holds_alternative<NameAttr>(node.attr)) continue;
    const std::size_t hash = hash_of(node);
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
