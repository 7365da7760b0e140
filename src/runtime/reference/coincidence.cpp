// SPDX-License-Identifier: Apache-2.0
#include "runtime/reference/coincidence.hpp"

#include <algorithm>
#include <set>

namespace fuse::runtime::reference {
namespace {

using ir::NodeId;
using ir::Op;

/// The results are elements of floating operands, unchanged.
bool selects(const ir::Node& node) {
  switch (node.op) {
    case Op::max:
    case Op::min:
    case Op::select:
    case Op::reduce_max:
    case Op::reduce_min:
      return true;
    default:
      return info(node.op).has(ir::Trait::movement);
  }
}

/// A result of 0 comes of operands that are 0, or underflows.
bool keeps_zero(const ir::Node& node) {
  switch (node.op) {
    case Op::mul:
    case Op::div:
    case Op::abs:
    case Op::neg:
    case Op::sqrt:
    case Op::convert:
    case Op::exp:
    case Op::exp2:
      return true;
    default:
      return selects(node) || info(node.op).relation == ir::Relation::none;
  }
}

/// Those whose zeros the result may have.
std::vector<NodeId> origins_of_zero(const ir::Node& node) {
  if (node.op == Op::exp || node.op == Op::exp2) return {};
  if (node.op == Op::div) return {node.operands[0]};
  return {node.operands.begin(), node.operands.end()};
}

/// Itself, and what it selects from.
std::set<NodeId> origins(const ir::Graph& graph, NodeId id) {
  std::set<NodeId> found;
  std::vector<NodeId> open = {id};
  while (!open.empty()) {
    const NodeId next = open.back();
    open.pop_back();
    const ir::Node& node = graph[next];
    if (!is_floating(node.type.dtype) || !found.insert(next).second) continue;
    if (selects(node)) open.insert(open.end(), node.operands.begin(), node.operands.end());
  }
  return found;
}

}  // namespace

std::vector<bool> cancelling_nodes(const ir::Graph& graph) {
  std::vector<bool> cancelling;
  for (const ir::Node& node : graph.nodes) {
    const bool floating = is_floating(node.type.dtype);
    cancelling.push_back(
        floating && (!keeps_zero(node) ||
                     std::ranges::any_of(origins_of_zero(node), [&](NodeId id) { return cancelling[id]; })));
  }
  return cancelling;
}

bool select_from_one(const ir::Graph& graph, NodeId a, NodeId b) {
  const std::set<NodeId> first = origins(graph, a);
  return std::ranges::any_of(origins(graph, b), [&](NodeId id) { return first.contains(id); });
}

}  // namespace fuse::runtime::reference
