// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/strided_access.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr int most_ops = 12;  // on the way to memory

class Walk {
 public:
  Walk(const ir::Graph& graph, const analysis::Facts& facts, const std::function<bool(NodeId)>& in_memory)
      : graph_(graph), facts_(facts), in_memory_(in_memory) {}

  std::optional<StridedAccess> value(NodeId id, int ops, bool first) const {
    if (!first && in_memory_(id)) return StridedAccess{id, 0, dense(graph_[id].type.dims)};
    const Relation relation = info(graph_[id].op).relation;
    const bool moves = relation == Relation::slice || relation == Relation::permute ||
                       relation == Relation::broadcast || relation == Relation::reshape;
    if (!moves || ops == most_ops) return std::nullopt;
    const NodeId operand = graph_[id].operands[0];
    std::optional<StridedAccess> found = value(operand, ops + 1, false);
    if (found && !step(graph_[id], graph_[operand].type.dims, *found)) found.reset();
    return found;
  }

 private:
  /// From the operand's access to the node's.
  bool step(const ir::Node& node, const std::vector<Dim>& from, StridedAccess& access) const {
    switch (info(node.op).relation) {
      case Relation::slice:
        return step_slice(node, from, access);
      case Relation::permute: {
        const auto& order = ir::attr<ir::DimsAttr>(node).dims;
        std::vector<StridedDim> dims;
        for (const std::int64_t axis : order) dims.push_back(access.dims[static_cast<std::size_t>(axis)]);
        access.dims = std::move(dims);
        return true;
      }
      case Relation::broadcast: {
        std::vector<StridedDim> dims;
        for (const Dim& extent : node.type.dims) dims.push_back({{extent, 0}});
        const auto& to = ir::attr<ir::DimsAttr>(node).dims;
        for (std::size_t i = 0; i < to.size(); ++i) {
          const auto axis = static_cast<std::size_t>(to[i]);
          if (facts_.equal(from[i], node.type.dims[axis])) {
            dims[axis] = access.dims[i];
          } else if (!facts_.equal(from[i], 1)) {
            return false;
          }
        }
        access.dims = std::move(dims);
        return true;
      }
      default: {
        std::optional<std::vector<StridedDim>> dims = reshaped(access.dims, node.type.dims, facts_);
        if (dims) access.dims = std::move(*dims);
        return dims.has_value();
      }
    }
  }

  bool step_slice(const ir::Node& node, const std::vector<Dim>& from, StridedAccess& access) const {
    const auto& slice = ir::attr<ir::SliceAttr>(node);
    for (std::size_t i = 0; i < from.size(); ++i) {
      const bool all =
          slice.starts[i].is(0) && slice.strides[i] == 1 && facts_.equal(node.type.dims[i], from[i]);
      if (all) continue;
      if (access.dims[i].size() > 1) return false;
      if (access.dims[i].empty()) continue;  // the one element
      StridedAxis& axis = access.dims[i][0];
      access.offset = access.offset + slice.starts[i] * axis.stride;
      axis = {node.type.dims[i], axis.stride * slice.strides[i]};
    }
    return true;
  }

  const ir::Graph& graph_;
  const analysis::Facts& facts_;
  const std::function<bool(NodeId)>& in_memory_;
};

/// Adds an axis outside of the others; one that they continue becomes one with them.
void add_outer(StridedDim& axes, const StridedAxis& axis, const analysis::Facts& facts) {
  if (!axes.empty() && facts.equal(axis.stride, axes.front().extent * axes.front().stride)) {
    axes.front().extent = axes.front().extent * axis.extent;
  } else {
    axes.insert(axes.begin(), axis);
  }
}

/// The dims of a reshape of those axes, outermost first, each longer than 1: an axis is divided by dims, or a
/// dim has several axes.
std::optional<std::vector<StridedDim>> divided(const StridedDim& axes, const std::vector<Dim>& to,
                                               const analysis::Facts& facts) {
  std::vector<StridedDim> result(to.size());
  std::size_t axis = axes.size();
  for (std::size_t i = to.size(); i-- > 0;) {
    if (facts.equal(to[i], 1)) continue;
    if (axis == 0) return std::nullopt;
    // An axis that several dims share.
    Dim covered = 1;
    std::size_t outer = i + 1;
    while (outer > 0 && !facts.equal(covered, axes[axis - 1].extent)) covered = covered * to[--outer];
    if (facts.equal(covered, axes[axis - 1].extent)) {
      Dim stride = axes[--axis].stride;
      for (std::size_t dim = i + 1; dim-- > outer;) {
        if (!facts.equal(to[dim], 1)) result[dim] = {{to[dim], stride}};
        stride = stride * to[dim];
      }
      i = outer;
      continue;
    }
    // Several axes that are one dim.
    covered = 1;
    while (axis > 0 && !facts.equal(covered, to[i])) {
      covered = covered * axes[--axis].extent;
      add_outer(result[i], axes[axis], facts);
    }
    if (!facts.equal(covered, to[i])) return std::nullopt;
  }
  if (axis != 0) return std::nullopt;
  return result;
}

}  // namespace

std::optional<StridedAccess> strided_access(const ir::Graph& graph, NodeId value,
                                            const analysis::Facts& facts,
                                            const std::function<bool(NodeId)>& in_memory) {
  return Walk(graph, facts, in_memory).value(value, 0, true);
}

std::optional<std::vector<StridedDim>> reshaped(const std::vector<StridedDim>& from,
                                                const std::vector<Dim>& to, const analysis::Facts& facts) {
  StridedDim axes, joined;
  for (auto dim = from.rbegin(); dim != from.rend(); ++dim) {
    for (auto axis = dim->rbegin(); axis != dim->rend(); ++axis) {
      if (facts.equal(axis->extent, 1)) continue;
      axes.insert(axes.begin(), *axis);
      add_outer(joined, *axis, facts);
    }
  }
  // Axes that continue each other may be divided elsewhere than they are now.
  std::optional<std::vector<StridedDim>> dims = divided(axes, to, facts);
  return dims ? dims : divided(joined, to, facts);
}

std::vector<StridedDim> dense(const std::vector<Dim>& dims) {
  std::vector<StridedDim> result(dims.size());
  Dim stride = 1;
  for (std::size_t i = dims.size(); i-- > 0;) {
    result[i] = {{dims[i], stride}};
    stride = stride * dims[i];
  }
  return result;
}

std::string strides_text(const std::vector<StridedDim>& dims) {
  std::string text;
  for (const StridedDim& dim : dims) {
    text += text.empty() ? "" : ", ";
    for (const StridedAxis& axis : dim) text += (&axis == dim.data() ? "" : " x ") + axis.stride.to_string();
    if (dim.empty()) text += '0';
  }
  return text;
}

}  // namespace fuse::schedule
