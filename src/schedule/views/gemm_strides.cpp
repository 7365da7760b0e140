// SPDX-License-Identifier: Apache-2.0
#include "schedule/views/gemm_strides.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace fuse::schedule {
namespace {

// The positions of operands and the result in what is kept of all three.
constexpr std::size_t of_a = 0, of_b = 1, of_c = 2;

/// One axis of a batch, and what lies between its matrices.
struct Axis {
  Dim extent{};
  std::array<Dim, 3> strides{};
};

/// The axes that are longer than 1, with axes that continue each other in all matrices merged into one.
std::vector<Axis> merged_axes(const std::vector<Axis>& axes, const analysis::Facts& facts) {
  std::vector<Axis> result;
  for (const Axis& axis : axes) {
    if (facts.equal(axis.extent, 1)) continue;
    bool continues = !result.empty();
    for (std::size_t i = 0; continues && i < 3; ++i)
      continues = facts.equal(result.back().strides[i], axis.extent * axis.strides[i]);
    if (continues) {
      result.back() = {result.back().extent * axis.extent, axis.strides};
    } else {
      result.push_back(axis);
    }
  }
  return result;
}

/// The axes of a dim of the batch in all three matrices, outermost first; none where they do not fit
/// together.
std::optional<std::vector<Axis>> common_axes(std::array<StridedDim, 3> dims, const analysis::Facts& facts) {
  std::vector<Axis> result;
  while (true) {
    for (StridedDim& dim : dims) {
      while (!dim.empty() && facts.equal(dim.back().extent, 1)) dim.pop_back();
    }
    // The one with most axes says where the others are divided.
    const StridedDim finest =
        *std::max_element(dims.begin(), dims.end(),
                          [](const StridedDim& x, const StridedDim& y) { return x.size() < y.size(); });
    if (finest.empty()) break;
    const Dim extent = finest.back().extent;
    Dim rest = 1;
    for (std::size_t i = 0; i + 1 < finest.size(); ++i) rest = rest * finest[i].extent;
    Axis axis{extent, {}};
    for (std::size_t i = 0; i < 3; ++i) {
      if (dims[i].empty()) return std::nullopt;
      StridedAxis& inner = dims[i].back();
      axis.strides[i] = inner.stride;
      if (facts.equal(inner.extent, extent)) {
        dims[i].pop_back();
      } else if (dims[i].size() == 1 && facts.equal(inner.extent, extent * rest)) {
        inner = {rest, inner.stride * extent};
      } else {
        return std::nullopt;
      }
    }
    result.insert(result.begin(), std::move(axis));
  }
  return result;
}

/// The matrix of an operand: which of its last two dims lies side by side, and what lies between the other's.
struct Matrix {
  std::optional<Dim> row{};  ///< none: neither lies side by side
  bool swapped = false;      ///< the last dim but one lies side by side
};

Matrix matrix_of(const std::vector<Dim>& dims, const std::vector<StridedDim>& lies,
                 const analysis::Facts& facts) {
  const std::size_t last = dims.size() - 1;
  if (lies[last].size() > 1 || lies[last - 1].size() > 1) return {};
  const auto one = [&](std::size_t i) { return lies[i].empty() || facts.equal(dims[i], 1); };
  const auto side_by_side = [&](std::size_t i) { return one(i) || facts.equal(lies[i][0].stride, 1); };
  const auto between = [&](std::size_t i, std::size_t other) -> std::optional<Dim> {
    if (one(i)) return dims[other];
    if (lies[i][0].stride.is(0)) return std::nullopt;
    return lies[i][0].stride;
  };
  if (side_by_side(last)) return {between(last - 1, last), false};
  if (side_by_side(last - 1)) return {between(last, last - 1), true};
  return {};
}

GemmLayout layout_of(const Dim& row, const std::vector<Axis>& batch, std::size_t which) {
  GemmLayout layout{.row = row};
  if (!batch.empty()) {
    layout.inner = batch.back().extent;
    layout.inner_stride = batch.back().strides[which];
  }
  if (batch.size() > 1) {
    layout.outer = batch.front().extent;
    layout.outer_stride = batch.front().strides[which];
  }
  return layout;
}

}  // namespace

GemmLayoutsChoice layouts_of(const ir::Graph& graph, ir::NodeId matmul, const GemmStrides& strides,
                             const analysis::Facts& facts) {
  const ir::Node& node = graph[matmul];
  const auto& flags = ir::attr<ir::MatmulAttr>(node);
  const std::array<const std::vector<Dim>*, 3> dims = {&graph[node.operands[0]].type.dims,
                                                       &graph[node.operands[1]].type.dims, &node.type.dims};
  const std::array<std::vector<StridedDim>, 3> all = {strides.a.value_or(dense(*dims[of_a])),
                                                      strides.b.value_or(dense(*dims[of_b])),
                                                      strides.c.value_or(dense(*dims[of_c]))};
  const std::size_t rank = node.type.dims.size();
  if (strides.c && !facts.equal((*dims[of_c])[rank - 1], 1) &&
      !facts.equal(all[of_c][rank - 1][0].stride, 1)) {
    return {
        {},
        fmt::format("the elements of a row would stand {} apart", all[of_c][rank - 1][0].stride.to_string())};
  }
  std::vector<Axis> axes;
  for (std::size_t i = 0; i + 2 < rank; ++i) {
    const std::optional<std::vector<Axis>> common =
        common_axes({all[of_a][i], all[of_b][i], all[of_c][i]}, facts);
    if (!common) return {{}, fmt::format("its operands divide dim {} differently", i)};
    axes.insert(axes.end(), common->begin(), common->end());
  }
  const std::vector<Axis> batch = merged_axes(axes, facts);
  if (batch.size() > 2) return {{}, fmt::format("its batch has {} strides", batch.size())};

  GemmLayouts result;
  if (batch.size() == 2) result.calls = batch.front().extent;
  for (const std::size_t which : {of_a, of_b}) {
    if (!(which == of_a ? strides.a : strides.b)) continue;
    const Matrix matrix = matrix_of(*dims[which], all[which], facts);
    if (!matrix.row) return {{}, "neither the rows nor the columns of its matrices lie side by side"};
    const bool flag = which == of_a ? flags.transpose_a : flags.transpose_b;
    (which == of_a ? result.a : result.b) =
        OperandLayout{layout_of(*matrix.row, batch, which), flag != matrix.swapped};
  }
  if (strides.c) {
    const bool one_row = facts.equal((*dims[of_c])[rank - 2], 1);
    result.c = layout_of(one_row ? (*dims[of_c])[rank - 1] : all[of_c][rank - 2][0].stride, batch, of_c);
  }
  return {std::move(result), {}};
}

std::vector<StridedDim> operand_in_transpose(const ir::Node& transpose) {
  const auto& order = ir::attr<ir::DimsAttr>(transpose).dims;
  const std::vector<StridedDim> whole = dense(transpose.type.dims);
  std::vector<StridedDim> operand(order.size());
  for (std::size_t i = 0; i < order.size(); ++i) operand[static_cast<std::size_t>(order[i])] = whole[i];
  return operand;
}

std::string dearer_than_step(const Dim& calls, double bytes, double launch_bytes) {
  const auto count = static_cast<double>(calls.hint());
  if ((count - 1) * launch_bytes <= bytes + launch_bytes) return {};
  return fmt::format(
      "its batch has two strides: {} calls would be {} launches more, the step is one and {} bytes", count,
      count - 1, bytes);
}

}  // namespace fuse::schedule
