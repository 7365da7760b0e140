// SPDX-License-Identifier: Apache-2.0
#include "passes/sink_reshapes.hpp"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "analysis/facts.hpp"

namespace fuse::ir {
namespace {

using Dims = std::vector<Dim>;

/// Dims [from, from_end) of one shape that have as many elements as dims [to, to_end) of another.
struct Match {
  std::size_t from = 0, from_end = 0, to = 0, to_end = 0;
};

/// A broadcast in other dims: the dims of its operand there, and the axes along which they run.
struct Repeat {
  Dims operand{};
  std::vector<std::int64_t> axes{};
};

class Sinker {
 public:
  explicit Sinker(const Graph& graph) : graph_(graph), result_(graph), equal_(graph) {
    result_.nodes.clear();
    result_.nodes.reserve(graph.nodes.size());
  }

  Graph run() {
    to_.resize(graph_.nodes.size());
    for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
      Node node = graph_[id];
      for (NodeId& operand : node.operands) operand = to_[operand];
      to_[id] = add(std::move(node));
    }
    renumber_outputs(result_, to_);
    return std::move(result_);
  }

 private:
  const Dims& dims(NodeId id) const { return result_[id].type.dims; }

  NodeId append(Node node) {
    anchored_.push_back(is_anchored(node));
    core_.emplace_back();
    result_.nodes.push_back(std::move(node));
    return static_cast<NodeId>(result_.nodes.size() - 1);
  }

  /// Whether the value follows from a reduction by ops that a kernel with the reduction's loops can compute.
  bool is_anchored(const Node& node) const {
    switch (info(node.op).relation) {
      case Relation::reduce:
        return true;
      case Relation::identity:
      case Relation::broadcast:
      case Relation::reshape:
        return std::any_of(node.operands.begin(), node.operands.end(),
                           [&](NodeId operand) { return anchored_[operand]; });
      default:
        return false;
    }
  }

  NodeId add(Node node) {
    switch (info(node.op).relation) {
      case Relation::reshape:
        return reshape(std::move(node));
      case Relation::identity:
        return elementwise(std::move(node));
      case Relation::reduce:
        return reduction(std::move(node));
      case Relation::broadcast:
        return broadcast(std::move(node));
      default:
        return append(std::move(node));
    }
  }

  NodeId reshape(Node node) {
    const NodeId operand = node.operands[0];
    const NodeId from = core_[operand].value_or(operand);
    if (dims(from) == node.type.dims) return from;
    node.operands = {from};
    const NodeId id = append(std::move(node));
    if (anchored_[from]) core_[id] = from;
    return id;
  }

  /// The value in other dims, by the reshape of a node at `like`'s location.
  NodeId reshaped(NodeId id, const Dims& wanted, const Node& like) {
    if (dims(id) == wanted) return id;
    return append({.op = Op::reshape,
                   .attr = NoAttr{},
                   .operands = {id},
                   .type = {result_[id].type.dtype, wanted},
                   .scope = like.scope,
                   .location = like.location});
  }

  /// `made` has the elements of `node`, in other dims.
  NodeId instead(const Node& node, NodeId made) {
    const NodeId id = reshaped(made, node.type.dims, node);
    if (id != made) core_[id] = made;
    return id;
  }

  NodeId elementwise(Node node) {
    const auto first = std::find_if(node.operands.begin(), node.operands.end(),
                                    [&](NodeId operand) { return core_[operand].has_value(); });
    if (first == node.operands.end()) return append(std::move(node));
    const Dims wanted = dims(*core_[*first]);
    std::vector<std::optional<Repeat>> repeats;
    for (const NodeId operand : node.operands) {
      const bool has_core = core_[operand] && dims(*core_[operand]) == wanted;
      repeats.push_back(has_core ? std::nullopt : repeat_in(operand, wanted));
      // Reductions with other loops made it.
      if (!has_core && !repeats.back() && anchored_[operand]) return append(std::move(node));
    }
    Node inner = node;
    for (std::size_t i = 0; i < node.operands.size(); ++i)
      inner.operands[i] = in_dims(node.operands[i], wanted, repeats[i], node);
    inner.type.dims = wanted;
    return instead(node, append(std::move(inner)));
  }

  /// The operand, which has as many elements, in other dims: what it is a reshape of, or repeated anew.
  NodeId in_dims(NodeId operand, const Dims& wanted, const std::optional<Repeat>& repeat, const Node& user) {
    if (core_[operand] && dims(*core_[operand]) == wanted) return *core_[operand];
    if (!repeat) return reshaped(operand, wanted, user);
    Node other = result_[operand];
    other.type.dims = wanted;
    if (other.operands.empty()) return append(std::move(other));
    other.operands = {reshaped(other.operands[0], repeat->operand, user)};
    other.attr = DimsAttr{repeat->axes};
    return append(std::move(other));
  }

  /// How a constant or a broadcast repeats the same elements in other dims; none where it is neither, or
  /// where it repeats a part of what are dims together there.
  std::optional<Repeat> repeat_in(NodeId id, const Dims& wanted) {
    const Node& node = result_[id];
    if (std::holds_alternative<ConstantAttr>(node.attr)) return Repeat{};
    if (info(node.op).relation != Relation::broadcast) return std::nullopt;
    const std::optional<std::vector<Match>> matches = match(node.type.dims, wanted);
    if (!matches) return std::nullopt;
    const Dims& from = dims(node.operands[0]);
    std::vector<bool> has(node.type.dims.size());
    for (std::size_t i = 0; i < from.size(); ++i) {
      const auto axis = static_cast<std::size_t>(attr<DimsAttr>(node).dims[i]);
      if (from[i] != node.type.dims[axis] && !from[i].is(1)) return std::nullopt;
      has[axis] = from[i] == node.type.dims[axis];
    }
    Repeat repeat;
    for (const Match& each : *matches) {
      std::size_t read = 0, long_axes = 0;
      for (std::size_t axis = each.from; axis < each.from_end; ++axis) {
        if (node.type.dims[axis].is(1)) continue;
        ++long_axes;
        read += has[axis] ? 1 : 0;
      }
      if (read != 0 && read != long_axes) return std::nullopt;
      if (read == 0) continue;
      for (std::size_t axis = each.to; axis < each.to_end; ++axis) {
        repeat.operand.push_back(wanted[axis]);
        repeat.axes.push_back(static_cast<std::int64_t>(axis));
      }
    }
    return repeat;
  }

  /// A reduction of dims that the reshape keeps apart from the others reduces what was reshaped.
  NodeId reduction(Node node) {
    const NodeId operand = node.operands[0];
    // A position is one of the dim that is reduced.
    if (!core_[operand] || info(node.op).identity == Identity::none) return append(std::move(node));
    const NodeId from = *core_[operand];
    const std::optional<std::vector<Match>> matches = match(dims(operand), dims(from));
    if (!matches) return append(std::move(node));
    const std::vector<std::int64_t>& reduced = attr<DimsAttr>(node).dims;
    const auto is_reduced = [&](std::size_t axis) {
      return std::binary_search(reduced.begin(), reduced.end(), static_cast<std::int64_t>(axis));
    };
    std::vector<std::int64_t> axes;
    Dims kept;
    for (const Match& each : *matches) {
      std::size_t count = 0, long_axes = 0;
      for (std::size_t axis = each.from; axis < each.from_end; ++axis) {
        if (dims(operand)[axis].is(1)) continue;
        ++long_axes;
        count += is_reduced(axis) ? 1 : 0;
      }
      if (count != 0 && count != long_axes) return append(std::move(node));
      for (std::size_t axis = each.to; axis < each.to_end; ++axis) {
        count != 0 ? axes.push_back(static_cast<std::int64_t>(axis)) : kept.push_back(dims(from)[axis]);
      }
    }
    if (axes.empty()) return append(std::move(node));
    Node inner = node;
    inner.operands = {from};
    inner.attr = DimsAttr{std::move(axes)};
    inner.type.dims = std::move(kept);
    return instead(node, append(std::move(inner)));
  }

  /// A broadcast of all that the reshape makes of some dims repeats these, too.
  NodeId broadcast(Node node) {
    const NodeId operand = node.operands[0];
    if (!core_[operand]) return append(std::move(node));
    const NodeId from = *core_[operand];
    const std::optional<std::vector<Match>> matches = match(dims(operand), dims(from));
    if (!matches) return append(std::move(node));
    const std::vector<std::int64_t>& axes = attr<DimsAttr>(node).dims;
    Dims wanted;
    std::vector<std::int64_t> mapped;
    std::size_t next = 0;  // axis of the result
    const auto repeat_until = [&](std::size_t axis) {
      for (; next < axis; ++next) wanted.push_back(node.type.dims[next]);
    };
    for (const Match& each : *matches) {
      bool first = true;
      for (std::size_t i = each.from; i < each.from_end; ++i) {
        if (dims(operand)[i].is(1)) continue;
        const auto axis = static_cast<std::size_t>(axes[i]);
        // Nothing is repeated between dims that are one in the core.
        const auto begin = node.type.dims.begin() + static_cast<std::ptrdiff_t>(next),
                   end = node.type.dims.begin() + static_cast<std::ptrdiff_t>(axis);
        if (!first && !std::all_of(begin, end, [](const Dim& dim) { return dim.is(1); }))
          return append(std::move(node));
        if (first) repeat_until(axis);
        first = false;
        next = axis + 1;
      }
      for (std::size_t i = each.to; i < each.to_end; ++i) {
        mapped.push_back(static_cast<std::int64_t>(wanted.size()));
        wanted.push_back(dims(from)[i]);
      }
    }
    repeat_until(node.type.dims.size());
    Node inner = node;
    inner.operands = {from};
    inner.attr = DimsAttr{std::move(mapped)};
    inner.type.dims = std::move(wanted);
    return instead(node, append(std::move(inner)));
  }

  /// The shortest runs of dims of both shapes, in order, with as many elements; none where products do not
  /// say so. Empty values have no such runs.
  std::optional<std::vector<Match>> match(const Dims& from, const Dims& to) {
    std::vector<Match> matches;
    std::size_t i = 0, k = 0;
    while (i < from.size() || k < to.size()) {
      Match each{i, i, k, k};
      Dim mine = 1, theirs = 1;
      // The side with fewer elements goes on; where nobody knows which, the other one.
      do {
        if ((k == to.size() || is_at_most(mine, theirs)) && i < from.size()) {
          mine = mine * from[i++];
        } else if (k < to.size()) {
          theirs = theirs * to[k++];
        } else {
          return std::nullopt;
        }
        if (mine.is(0) || theirs.is(0)) return std::nullopt;
      } while (!equal_(mine, theirs));
      each.from_end = i;
      each.to_end = k;
      matches.push_back(each);
    }
    return matches;
  }

  static bool is_at_most(const Dim& a, const Dim& b) { return (b % a).is(0) || a.max() < b.max(); }

  const Graph& graph_;
  Graph result_;
  std::vector<NodeId> to_;
  std::vector<bool> anchored_;
  /// Per node of the result: what it is a reshape of, where that follows from a reduction.
  std::vector<std::optional<NodeId>> core_;
  analysis::EqualExtents equal_;
};

}  // namespace

Graph sink_reshapes(const Graph& graph) { return Sinker(graph).run(); }

}  // namespace fuse::ir
