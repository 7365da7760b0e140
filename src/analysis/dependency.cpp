// SPDX-License-Identifier: Apache-2.0
#include "analysis/dependency.hpp"

#include <algorithm>
#include <optional>

namespace fuse::analysis {

using ir::NodeId;

namespace {

/// Relates `node` with what `before` relates its operands to; an operand that stands twice counts twice.
/// Empty where it relates none of them.
template <class Before>
std::optional<ElementRelation> through(const ir::Graph& graph, NodeId node, Before before) {
  std::optional<ElementRelation> result;
  const std::vector<NodeId>& operands = graph[node].operands;
  for (std::size_t k = 0; k < operands.size(); ++k) {
    const ElementRelation* relation = before(operands[k]);
    if (!relation) continue;
    ElementRelation next = compose(element_relation(graph, node, k), *relation);
    result = result ? join(*result, next) : std::move(next);
    if (result->unknown()) break;  // more changes nothing
  }
  return result;
}

}  // namespace

ElementRelation relation_along(const ir::Graph& graph, std::span<const NodeId> path) {
  ElementRelation relation = identity_relation(graph[path.front()].type.dims);
  for (std::size_t i = 1; i < path.size(); ++i) {
    std::optional<ElementRelation> next =
        through(graph, path[i], [&](NodeId operand) { return operand == path[i - 1] ? &relation : nullptr; });
    if (!next) return no_relation(relation.operand, graph[path.back()].type.dims);
    relation = std::move(*next);
  }
  return relation;
}

ElementRelation relation_within(const ir::Graph& graph, NodeId from, NodeId to,
                                std::span<const NodeId> inside) {
  const std::vector<Dim>& dims = graph[from].type.dims;
  if (from == to) return identity_relation(dims);
  if (to < from) return no_relation(dims, graph[to].type.dims);
  // Indexed by number less `from`. First, going backwards from `to`, how often a node is an operand on the
  // way to it.
  std::vector<bool> allowed(to - from + 1);
  for (const NodeId node : inside) {
    if (node > from && node < to) allowed[node - from] = true;
  }
  allowed[0] = allowed[to - from] = true;
  std::vector<std::uint32_t> uses(allowed.size());
  uses[to - from] = 1;
  const auto operands_of = [&](NodeId node) {
    std::vector<NodeId> operands;
    for (const NodeId operand : graph[node].operands) {
      if (operand >= from && allowed[operand - from]) operands.push_back(operand);
    }
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    return operands;
  };
  for (NodeId node = to; node > from; --node) {
    if (!uses[node - from]) continue;
    for (const NodeId operand : operands_of(node)) ++uses[operand - from];
  }
  std::vector<std::optional<ElementRelation>> relations(allowed.size());
  relations[0] = identity_relation(dims);
  for (NodeId node = from + 1; node <= to; ++node) {
    if (!uses[node - from]) continue;
    relations[node - from] = through(graph, node, [&](NodeId operand) -> const ElementRelation* {
      if (operand < from || !allowed[operand - from] || !relations[operand - from]) return nullptr;
      return &*relations[operand - from];
    });
    for (const NodeId operand : operands_of(node)) {
      if (--uses[operand - from] == 0) relations[operand - from].reset();  // a long path keeps few of them
    }
  }
  std::optional<ElementRelation>& result = relations[to - from];
  return result ? std::move(*result) : no_relation(dims, graph[to].type.dims);
}

Dominators Dominators::of(const std::vector<std::vector<NodeId>>& next, const std::vector<bool>& ends) {
  const auto size = static_cast<NodeId>(next.size());
  Dominators tree;
  tree.parent_.assign(size + 1, size);
  tree.jump_.assign(size + 1, size);
  tree.depth_.assign(size + 1, 0);
  bool downwards = true;  // the nodes that stand nearer to the root come first
  for (NodeId node = 0; node < size && downwards; ++node) {
    downwards = std::all_of(next[node].begin(), next[node].end(), [&](NodeId other) { return other > node; });
  }
  for (NodeId i = 0; i < size; ++i) {
    const NodeId node = downwards ? size - 1 - i : i;
    NodeId parent = size;
    if (!ends[node] && !next[node].empty()) {
      parent = next[node].front();
      for (const NodeId other : next[node]) parent = tree.meet(parent, other);
    }
    // A jump leads as far as two jumps of the parent where those are equally long: any way up takes O(log n).
    const NodeId jump = tree.jump_[parent], beyond = tree.jump_[jump];
    const bool doubles = tree.depth_[parent] - tree.depth_[jump] == tree.depth_[jump] - tree.depth_[beyond];
    tree.parent_[node] = parent;
    tree.jump_[node] = doubles ? beyond : parent;
    tree.depth_[node] = tree.depth_[parent] + 1;
  }
  return tree;
}

NodeId Dominators::meet(NodeId a, NodeId b) const {
  if (depth_[a] < depth_[b]) std::swap(a, b);
  while (depth_[a] > depth_[b]) a = depth_[jump_[a]] >= depth_[b] ? jump_[a] : parent_[a];
  while (a != b) {
    const bool far = jump_[a] != jump_[b];
    a = far ? jump_[a] : parent_[a];
    b = far ? jump_[b] : parent_[b];
  }
  return a;
}

bool Dominators::dominates(NodeId above, NodeId node) const {
  if (above == root) return true;
  return node != root && meet(above, node) == above;
}

NodeId Dominators::common(std::span<const NodeId> nodes) const {
  const auto top = static_cast<NodeId>(parent_.size() - 1);
  if (nodes.empty()) return root;
  NodeId result = nodes[0] == root ? top : nodes[0];
  for (const NodeId node : nodes) result = meet(result, node == root ? top : node);
  return result == top ? root : result;
}

Dominators dominators(const ir::Graph& graph) {
  std::vector<std::vector<NodeId>> operands;
  for (const ir::Node& node : graph.nodes) operands.push_back(node.operands);
  return Dominators::of(operands, std::vector<bool>(operands.size()));
}

Dominators post_dominators(const ir::Graph& graph) {
  std::vector<bool> ends(graph.nodes.size());
  for (const ir::Output& output : graph.outputs) ends[output.node] = true;
  return Dominators::of(ir::users(graph), ends);
}

std::vector<Fork> forks(const ir::Graph& graph, const Dominators& post) {
  std::vector<std::vector<NodeId>> users = ir::users(graph);
  std::vector<Fork> result;
  for (NodeId node = 0; node < users.size(); ++node) {
    if (users[node].size() < 2) continue;
    const NodeId join = post.common(users[node]);
    result.push_back({node, std::move(users[node]), join});
  }
  return result;
}

}  // namespace fuse::analysis
