// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/nest_position.hpp"

#include <array>

namespace fuse::codegen {

using kernel::Index;
using schedule::Level;
using schedule::Nest;
using schedule::Split;

namespace {

/// The number of a thread along an axis of the machine, which the splits of its levels share.
struct Axis {
  Level level, other;
  Index number;
};

bool lies_on(const Axis& axis, const Split& split) {
  return split.level == axis.level || split.level == axis.other;
}

/// The unit of splits[i], which is a digit of the axis' number; the last split is the fastest.
Index unit_of(const Nest& nest, std::size_t i, const Axis& axis) {
  std::int64_t behind = 1;
  for (std::size_t k = i + 1; k < nest.splits.size(); ++k) {
    if (lies_on(axis, nest.splits[k])) behind *= nest.splits[k].extent;
  }
  bool slowest = true;
  for (std::size_t k = 0; k < i; ++k) slowest = slowest && !lies_on(axis, nest.splits[k]);
  const Index digits = behind == 1 ? axis.number : axis.number / behind;
  return slowest ? digits : digits % nest.splits[i].extent;
}

/// The stride in groups of elements that lie side by side.
std::int64_t stride_of(const Nest& nest, std::size_t i) {
  std::int64_t stride = 1;
  for (std::size_t k = i + 1; k < nest.splits.size(); ++k) {
    const Split& split = nest.splits[k];
    if (split.dim == nest.splits[i].dim && split.level != Level::vector) stride *= split.extent;
  }
  return stride;
}

std::array<Axis, 3> axes_of(const ThreadIndex& at) {
  return {{{Level::grid, Level::cluster, at.block},
           {Level::warp, Level::warp, at.warp},
           {Level::lane, Level::lane, at.lane}}};
}

}  // namespace

NestPosition position_of(const Nest& nest, char dim, const ThreadIndex& at) {
  const std::array<Axis, 3> axes = axes_of(at);
  NestPosition position;
  for (std::size_t i = 0; i < nest.splits.size(); ++i) {
    const Split& split = nest.splits[i];
    if (split.dim != dim) continue;
    for (const Axis& axis : axes) {
      if (!lies_on(axis, split)) continue;
      const Index unit = unit_of(nest, i, axis);
      position.first = position.first + unit * stride_of(nest, i);
      if (axis.level != Level::grid) position.in_block = position.in_block + unit * stride_of(nest, i);
      if (split.extent == 0) continue;
      position.step = position.step * split.extent;
      position.leader.push_back({unit, 1});
      if (axis.level != Level::grid) position.leader_in_block.push_back({unit, 1});
    }
  }
  return position;
}

Index unit_of(const Nest& nest, char dim, Level level, const ThreadIndex& at) {
  for (std::size_t i = 0; i < nest.splits.size(); ++i) {
    if (nest.splits[i].dim != dim || nest.splits[i].level != level) continue;
    for (const Axis& axis : axes_of(at)) {
      if (lies_on(axis, nest.splits[i])) return unit_of(nest, i, axis);
    }
  }
  return 0;
}

int units_of(const Nest& nest, char dim, Level level) {
  return static_cast<int>(schedule::units_of(nest.splits, dim, level));
}

int lane_stride(const Nest& nest, char dim) {
  int behind = 1;
  for (auto split = nest.splits.rbegin(); split != nest.splits.rend(); ++split) {
    if (split->level != Level::lane) continue;
    if (split->dim == dim) return behind;
    behind *= static_cast<int>(split->extent);
  }
  return behind;
}

bool varies_in_block(const Nest& nest, char dim) {
  return units_of(nest, dim, Level::warp) * units_of(nest, dim, Level::lane) > 1;
}

}  // namespace fuse::codegen
