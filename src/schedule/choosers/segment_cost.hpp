// What a kernel segment costs by the model of step_cost.hpp: its launches one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// The bytes of its inputs and results, each once, with symbols at their hints.
std::int64_t moved_bytes(const ir::Graph&, const Phase&);
/// The bytes that partial launches leave.
std::int64_t scratch_bytes(const ir::Graph&, const Phase&, const Choices&);
/// The seconds of a phase as a kernel of its own.
double phase_seconds(const ir::Graph&, const Phase&, const Choices&, const Target&);
double segment_seconds(const ir::Graph&, const Segment&, const KernelChoices&, const Target&);

/// The same for a regional segment, whose slices and shared memory are known: finding them takes longer than
/// this.
double regional_seconds(const ir::Graph&, const Segment&, const KernelChoices&, const Slices&,
                        std::int64_t shared, const Target&);

}  // namespace fuse::schedule
