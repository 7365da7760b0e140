// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/gemm_output_layout.hpp"

#include <fmt/format.h>

#include <vector>

namespace fuse::schedule {
namespace {

struct Axis {
  Dim extent{}, stride{};
};

/// The axes of the matmul's result, outermost first, at their positions in the transposed one.
std::vector<Axis> axes_of(const ir::Node& transpose) {
  const auto& order = ir::attr<ir::DimsAttr>(transpose).dims;
  const std::vector<Dim>& extents = transpose.type.dims;
  std::vector<Axis> axes(order.size());
  Dim stride = 1;
  for (std::size_t i = order.size(); i-- > 0;) {
    axes[static_cast<std::size_t>(order[i])] = {extents[i], stride};
    stride = stride * extents[i];
  }
  return axes;
}

/// The axes that are longer than 1, with axes that continue each other merged into one.
std::vector<Axis> merged_axes(const std::vector<Axis>& axes, const analysis::Facts& facts) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (facts.equal(axis.extent, 1)) continue;
    if (!result.empty() && facts.equal(result.back().stride, axis.extent * axis.stride)) {
      result.back() = {result.back().extent * axis.extent, axis.stride};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

}  // namespace

GemmLayoutChoice output_layout_of(const ir::Graph& graph, ir::NodeId transpose, const analysis::Facts& facts,
                                  double launch_bytes) {
  const ir::Node& node = graph[transpose];
  std::vector<Axis> axes = axes_of(node);
  const Axis column = axes.back(), row = axes[axes.size() - 2];
  axes.resize(axes.size() - 2);
  if (!facts.equal(column.extent, 1) && !facts.equal(column.stride, 1)) {
    return {{}, fmt::format("the elements of a row would stand {} apart", column.stride.to_string())};
  }
  const std::vector<Axis> batch = merged_axes(axes, facts);
  if (batch.size() > 2) return {{}, fmt::format("its batch has {} strides", batch.size())};
  GemmLayout layout{.row = facts.equal(row.extent, 1) ? column.extent : row.stride};
  if (!batch.empty()) {
    layout.inner = batch.back().extent;
    layout.inner_stride = batch.back().stride;
  }
  if (batch.size() < 2) return {std::move(layout), {}};

  layout.outer = batch.front().extent;
  layout.outer_stride = batch.front().stride;
  const double bytes =
      2 * static_cast<double>(product(node.type.dims).hint()) * static_cast<double>(size_of(node.type.dtype));
  const auto calls = static_cast<double>(layout.outer.hint());
  if ((calls - 1) * launch_bytes <= bytes + launch_bytes) return {std::move(layout), {}};
  return {std::move(layout),
          fmt::format(
              "its batch has two strides: {} calls would be {} launches more, the step is one and {} bytes",
              calls, calls - 1, bytes)};
}

}  // namespace fuse::schedule
