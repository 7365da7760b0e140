// Launch bounds: how many blocks of a kernel a multiprocessor is to hold at a time, which tells the compiler
// how many registers a thread may take (AStitch, 4.4: assume, relax, apply).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "target/target.hpp"

namespace fuse::schedule {

struct KernelSchedule;

/// Assumes 1024 threads on a multiprocessor, 64 registers each, or the number of registers that the choices
/// say; relaxed to what the grid has blocks for and
/// what `shared_bytes` a block leave places for, which costs no occupancy. Never fewer than `least`.
int min_blocks_per_sm(const KernelSchedule&, std::int64_t shared_bytes, int least, const Target&);

}  // namespace fuse::schedule
