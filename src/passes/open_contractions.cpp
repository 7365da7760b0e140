// SPDX-License-Identifier: Apache-2.0
#include "passes/open_contractions.hpp"

#include <algorithm>

namespace fuse::ir {
namespace {

using Axes = std::vector<std::int64_t>;

Axes joined(Axes first, const Axes& second, const Axes& third) {
  first.insert(first.end(), second.begin(), second.end());
  first.insert(first.end(), third.begin(), third.end());
  return first;
}

Axes free_axes(std::int64_t rank, const Axes& batch, const Axes& contracted) {
  Axes free;
  for (std::int64_t i = 0; i < rank; ++i) {
    const bool used = std::find(batch.begin(), batch.end(), i) != batch.end() ||
                      std::find(contracted.begin(), contracted.end(), i) != contracted.end();
    if (!used) free.push_back(i);
  }
  return free;
}

class Opener {
 public:
  explicit Opener(const Graph& graph) : graph_(graph), result_(graph) { result_.nodes.clear(); }

  Graph run() {
    std::vector<NodeId> renumbered(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      Node node = graph_[id];
      for (NodeId& operand : node.operands) operand = renumbered[operand];
      const auto* dims = std::get_if<ContractionAttr>(&node.attr);
      renumbered[id] = dims ? open(node, *dims) : add(std::move(node));
    }
    renumber_outputs(result_, renumbered);
    return std::move(result_);
  }

 private:
  NodeId add(Node node) {
    result_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(result_.nodes.size() - 1);
  }
  const std::vector<Dim>& dims(NodeId id) const { return result_[id].type.dims; }

  Dim extent(NodeId id, const Axes& axes) const {
    std::vector<Dim> extents;
    for (const std::int64_t axis : axes) extents.push_back(dims(id)[static_cast<std::size_t>(axis)]);
    return product(extents);
  }

  /// A node that moves the operand's elements, with the contraction's provenance.
  NodeId move(const Node& like, Op op, NodeId operand, Attr attr, std::vector<Dim> to) {
    Node node = like;
    node.op = op;
    node.attr = std::move(attr);
    node.operands = {operand};
    node.type = {result_[operand].type.dtype, std::move(to)};
    return node.type == result_[operand].type && op == Op::reshape ? operand : add(std::move(node));
  }

  /// The operand as [batch, rows, columns], or without batch as [rows, columns]; `swapped`: columns before
  /// rows.
  NodeId matrix(const Node& like, NodeId operand, const Axes& batch, const Axes& rows, const Axes& columns,
                bool& swapped) {
    const Axes wanted = joined(batch, rows, columns);
    swapped = !std::is_sorted(wanted.begin(), wanted.end());
    if (swapped) {
      const Axes other = joined(batch, columns, rows);
      swapped = std::is_sorted(other.begin(), other.end());
    }
    std::vector<Dim> extents = {extent(operand, rows), extent(operand, columns)};
    if (swapped) std::swap(extents[0], extents[1]);
    if (!batch.empty()) extents.insert(extents.begin(), extent(operand, batch));
    if (!swapped && !std::is_sorted(wanted.begin(), wanted.end())) {
      std::vector<Dim> permuted;
      for (const std::int64_t axis : wanted)
        permuted.push_back(dims(operand)[static_cast<std::size_t>(axis)]);
      operand = move(like, Op::transpose, operand, DimsAttr{wanted}, std::move(permuted));
    }
    return move(like, Op::reshape, operand, NoAttr{}, std::move(extents));
  }

  NodeId open(const Node& node, const ContractionAttr& of) {
    const NodeId a = node.operands[0], b = node.operands[1];
    const Axes a_free = free_axes(result_[a].type.rank(), of.batch_a, of.contract_a);
    const Axes b_free = free_axes(result_[b].type.rank(), of.batch_b, of.contract_b);
    MatmulAttr transposes;
    Node matmul = node;
    matmul.op = Op::matmul;
    matmul.operands = {matrix(node, a, of.batch_a, a_free, of.contract_a, transposes.transpose_a),
                       matrix(node, b, of.batch_b, of.contract_b, b_free, transposes.transpose_b)};
    matmul.attr = transposes;
    matmul.type.dims = {extent(a, a_free), extent(b, b_free)};
    if (!of.batch_a.empty()) matmul.type.dims.insert(matmul.type.dims.begin(), extent(a, of.batch_a));
    return move(node, Op::reshape, add(std::move(matmul)), NoAttr{}, node.type.dims);
  }

  const Graph& graph_;
  Graph result_;
};

}  // namespace

Graph open_contractions(const Graph& graph) { return Opener(graph).run(); }

}  // namespace fuse::ir
