// NestPosition: where a thread stands along a dim of a nest. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "codegen_cuda/lower/lowering_context.hpp"
#include "schedule/nest/nest.hpp"

namespace fuse::codegen {

/// The position along one dim. Splits of the level `vector` do not count: the numbers are those of groups of
/// elements that lie side by side.
struct NestPosition {
  kernel::Index first{};                    ///< the sum of unit x stride over splits of the machine's axes
  Dim step = 1;                             ///< units of these splits: where a thread's loop goes on
  std::vector<kernel::IndexLess> leader{};  ///< hold for unit 0 of each of these splits
  /// Conditions for unit 0 of the splits of warps and lanes.
  std::vector<kernel::IndexLess> leader_in_block{};
  kernel::Index in_block{};  ///< the part of `first` that warps and lanes make
};

/// `dim` is one of the nest's. The rest of a dim that no loop of the thread takes is not in `step`: the
/// machine has as many units.
NestPosition position_of(const schedule::Nest&, char dim, const ThreadIndex&);
/// The thread's number along the dim, among the units of one level; 0 where the dim has no split there.
kernel::Index unit_of(const schedule::Nest&, char dim, schedule::Level, const ThreadIndex&);
/// How many units the splits of a dim have at a level, counting those that have a number.
int units_of(const schedule::Nest&, char dim, schedule::Level);
/// How many lanes lie between two neighbours along the dim.
int lane_stride(const schedule::Nest&, char dim);
/// Whether the threads of a block are at different positions along the dim.
bool varies_in_block(const schedule::Nest&, char dim);

}  // namespace fuse::codegen
