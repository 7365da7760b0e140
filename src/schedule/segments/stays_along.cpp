// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/stays_along.hpp"

#include <algorithm>

namespace fuse::schedule {

using ir::Relation;

Positions long_dims(const std::vector<Dim>& dims) {
  Positions result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].is(1)) result.push_back(i);
  }
  return result;
}

bool stays_along(const ir::Graph& graph, const ir::Node& node, std::size_t operand, const Positions& dims) {
  const std::vector<Dim>& from = graph[node.operands[operand]].type.dims;
  const auto all = [&](const auto& stays) { return std::all_of(dims.begin(), dims.end(), stays); };
  switch (info(node.op).relation) {
    case Relation::slice: {
      const auto& slice = ir::attr<ir::SliceAttr>(node);
      return all([&](std::size_t dim) {
        return slice.starts[dim].is(0) && slice.strides[dim] == 1 && slice.limits[dim] == from[dim];
      });
    }
    case Relation::concat:
      return all([&](std::size_t dim) {
        return static_cast<std::int64_t>(dim) != ir::attr<ir::AxisAttr>(node).axis;
      });
    case Relation::pad: {
      const auto& pad = ir::attr<ir::PadAttr>(node);
      return operand == 0 && all([&](std::size_t dim) { return pad.low[dim].is(0) && pad.high[dim].is(0); });
    }
    case Relation::reverse: {
      const std::vector<std::int64_t>& reversed = ir::attr<ir::DimsAttr>(node).dims;
      return all([&](std::size_t dim) {
        return !std::binary_search(reversed.begin(), reversed.end(), static_cast<std::int64_t>(dim));
      });
    }
    case Relation::dynamic_slice:
    case Relation::update:
      // Starts are clamped, so that a box of the whole extent begins at 0.
      return operand < (node.op == ir::Op::dynamic_update_slice ? 2U : 1U) &&
             all([&](std::size_t dim) { return from[dim] == node.type.dims[dim]; });
    default:
      return false;
  }
}

}  // namespace fuse::schedule
