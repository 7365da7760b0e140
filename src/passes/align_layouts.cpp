// SPDX-License-Identifier: Apache-2.0
#include "passes/align_layouts.hpp"

#include <algorithm>
#include <numeric>
#include <optional>

namespace fuse::ir {
namespace {

using Axes = std::vector<std::int64_t>;

std::size_t index(std::int64_t axis) { return static_cast<std::size_t>(axis); }

bool is_identity(const Axes& permutation) { return std::is_sorted(permutation.begin(), permutation.end()); }

/// The last two of `rank` axes swapped.
Axes swap_of(std::int64_t rank) {
  Axes axes(index(rank));
  std::iota(axes.begin(), axes.end(), 0);
  std::swap(axes[axes.size() - 2], axes[axes.size() - 1]);
  return axes;
}

/// Whether dims of an extent other than 1 keep their order.
bool moves_only_units(const Axes& permutation, const std::vector<Dim>& result) {
  std::int64_t last = -1;
  for (std::size_t i = 0; i < permutation.size(); ++i) {
    if (result[i].is(1)) continue;
    if (permutation[i] < last) return false;
    last = permutation[i];
  }
  return true;
}

/// Another way to have a value: the transpose of `core`, which is in the graph for any user.
struct Form {
  NodeId core = 0;
  Axes permutation;
  bool saves = false;  ///< taking the core instead leaves a transpose without a user
  bool free = false;   ///< taking it computes nothing twice, however many use the value
};

class Aligner {
 public:
  explicit Aligner(const Graph& graph) : graph_(graph), result_(graph), users_(graph.nodes.size()) {
    result_.nodes.clear();
    result_.nodes.reserve(graph.nodes.size());
    count_users();
  }

  Graph run() {
    to_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      const Node& node = graph_[id];
      switch (info(node.op).relation) {
        case Relation::permute:
          to_[id] = transpose(node);
          break;
        case Relation::identity:
          to_[id] = elementwise(node);
          break;
        case Relation::contraction:
          to_[id] =
              std::holds_alternative<MatmulAttr>(node.attr) ? matmul(node, users_[id] == 1) : keep(node);
          break;
        default:
          to_[id] = keep(node);
      }
    }
    renumber_outputs(result_, to_);
    return std::move(result_);
  }

 private:
  /// Nodes and outputs that use a value, a node that uses it twice once.
  void count_users() {
    constexpr std::ptrdiff_t widest = 3;  // the most operands searched: ops that change sides have no more
    for (const Node& node : graph_.nodes) {
      const auto begin = node.operands.begin();
      for (auto operand = begin; operand != node.operands.end(); ++operand) {
        const bool again = operand - begin < widest && std::find(begin, operand, *operand) != operand;
        users_[*operand] += again ? 0 : 1;
      }
    }
    for (const Output& output : graph_.outputs) ++users_[output.node];
  }

  NodeId append(Node node, std::optional<Form> form = std::nullopt) {
    result_.nodes.push_back(std::move(node));
    forms_.push_back(std::move(form));
    return static_cast<NodeId>(result_.nodes.size() - 1);
  }

  Node with_operands(const Node& node) const {
    Node result = node;
    for (NodeId& operand : result.operands) operand = to_[operand];
    return result;
  }
  NodeId keep(const Node& node) { return append(with_operands(node)); }

  /// The form of an operand that the one user at hand may take.
  const Form* form_of(NodeId operand) const {
    const std::optional<Form>& form = forms_[to_[operand]];
    return form && (form->free || users_[operand] == 1) ? &*form : nullptr;
  }

  NodeId transpose(const Node& node) {
    Form form{to_[node.operands[0]], attr<DimsAttr>(node).dims, true, true};
    if (const Form* below = form_of(node.operands[0])) {
      Axes both;
      for (const std::int64_t axis : form.permutation) both.push_back(below->permutation[index(axis)]);
      if (is_identity(both)) return below->core;
      if (below->saves) form = {below->core, std::move(both), true, true};
    }
    Node moved = node;
    moved.operands = {form.core};
    if (moves_only_units(form.permutation, node.type.dims)) {
      moved.op = Op::reshape;
      moved.attr = NoAttr{};
    } else {
      moved.attr = DimsAttr{form.permutation};
    }
    return append(std::move(moved), std::move(form));
  }

  /// The dims of a core, of which `dims` are the transpose.
  static std::vector<Dim> core_dims(const std::vector<Dim>& dims, const Axes& permutation) {
    std::vector<Dim> result(dims.size());
    for (std::size_t i = 0; i < dims.size(); ++i) result[index(permutation[i])] = dims[i];
    return result;
  }

  /// A constant or a broadcast, repeated along permuted dims instead; empty where it is neither, or where its
  /// operand's dims would not stay in order.
  std::optional<Node> repeated(NodeId id, const Axes& permutation) const {
    Node node = result_[id];
    node.type.dims = core_dims(node.type.dims, permutation);
    if (std::holds_alternative<ConstantAttr>(node.attr)) return node;
    if (info(node.op).relation != Relation::broadcast) return std::nullopt;
    DimsAttr dims = attr<DimsAttr>(node);
    for (std::int64_t& dim : dims.dims) dim = permutation[index(dim)];
    if (std::adjacent_find(dims.dims.begin(), dims.dims.end(), std::greater_equal<>()) != dims.dims.end()) {
      return std::nullopt;
    }
    node.attr = std::move(dims);
    return node;
  }

  /// f(a^T, b^T) is f(a, b)^T.
  NodeId elementwise(const Node& node) {
    const Form* first = nullptr;
    bool saves = false;
    for (const NodeId operand : node.operands) {
      const Form* form = form_of(operand);
      if (!form) continue;
      if (!first) first = form;
      saves |= form->saves;
    }
    if (!first) return keep(node);
    const Axes permutation = first->permutation;
    Node core = node;
    std::vector<std::pair<std::size_t, Node>> made;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const Form* form = form_of(node.operands[i]);
      if (form && form->permutation == permutation) {
        core.operands[i] = form->core;
      } else if (auto other = repeated(to_[node.operands[i]], permutation)) {
        made.emplace_back(i, std::move(*other));
      } else {
        return keep(node);
      }
    }
    for (auto& [i, other] : made) core.operands[i] = append(std::move(other));
    core.type.dims = core_dims(node.type.dims, permutation);
    const NodeId id = append(std::move(core));
    return append(with_operands(node), Form{id, permutation, saves, false});
  }

  NodeId matmul(const Node& node, bool used_once) {
    Node result = with_operands(node);
    MatmulAttr flags = attr<MatmulAttr>(node);
    const Axes swap = swap_of(node.type.rank());
    for (const std::size_t i : {0, 1}) {
      const Form* form = form_of(node.operands[i]);
      if (!form || !form->saves || form->permutation != swap) continue;
      result.operands[i] = form->core;
      bool& flag = i == 0 ? flags.transpose_a : flags.transpose_b;
      flag = !flag;
    }
    result.attr = flags;
    if (!used_once) return append(std::move(result));
    Node other = result;
    std::swap(other.operands[0], other.operands[1]);
    other.attr = MatmulAttr{!flags.transpose_b, !flags.transpose_a};
    other.type.dims = core_dims(node.type.dims, swap);
    const NodeId core = append(std::move(other));
    return append(std::move(result), Form{core, swap, false, false});
  }

  const Graph& graph_;
  Graph result_;
  std::vector<std::uint32_t> users_;
  std::vector<NodeId> to_;
  std::vector<std::optional<Form>> forms_;  ///< the forms of the result's nodes
};

}  // namespace

Graph align_layouts(const Graph& graph) { return Aligner(graph).run(); }

}  // namespace fuse::ir
