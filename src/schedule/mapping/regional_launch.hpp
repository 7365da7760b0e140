// What a block of a regional kernel does of each phase, and the kernel that runs it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// The launch of each phase becomes what one block does of it: all of its slices, or its tile with the halo.
/// The only launch of the kernel runs them one after the other. Reads the schedule's segment, choices and
/// phases, and sets `in_block`, `kernels` and the phases' `windows`.
void make_regional(const ir::Graph&, const analysis::Facts&, Schedule&);

/// Why blocks cannot have the slices, or the tile, of these choices; empty if they can. `misfit` looks at the
/// shared memory that they take.
std::string defect_of_blocks(const ir::Graph&, const Segment&, const KernelChoices&);

}  // namespace fuse::schedule
