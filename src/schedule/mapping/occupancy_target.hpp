// Launch bounds: how many blocks of a kernel a multiprocessor should hold at a time, which tells the compiler
// how many registers a thread may take (AStitch, 4.4: assume, relax, apply).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "target/target.hpp"

namespace fuse::schedule {

struct KernelSchedule;

/// It assumes 1024 threads on a multiprocessor, with 64 registers each or the number that the choices say.
/// That is relaxed to the blocks that the grid has and that `shared_bytes` per block leave slots for, which
/// costs no occupancy. It is never fewer than `least`.
int min_blocks_per_sm(const KernelSchedule&, std::int64_t shared_bytes, int least, const Target&);

}  // namespace fuse::schedule
