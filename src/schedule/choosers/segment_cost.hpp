// What a kernel segment costs by the model of step_cost.hpp: its launches one after the other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "schedule/mapping/schedule.hpp"
#include "target/residency.hpp"

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
constexpr double l2_speed = 2;  ///< the bandwidth of the L2 cache, in that of memory

/// What the blocks of a regional kernel do. A block does one phase after another, and waits before each that
/// reads what an earlier one made. While it waits, other blocks of its multiprocessor move what they have,
/// and the next block takes its slot. None of these times has been measured; flow_of_cached_rows has what
/// was, for blocks of one phase.
struct BlockWork {
  static constexpr double wait = 0.6e-6;   // seconds at the barrier before a phase
  static constexpr double turn = 0.05e-6;  // and for each turn of a phase but the first
  double moved = 0;                        ///< bytes of all blocks
  double idle = 1e-6;                      ///< seconds in which a block moves nothing: its first loads
  double stalls = 0;      ///< seconds in which a block does nothing, and no other takes its slots
  double operations = 0;  ///< of all blocks
};
double seconds_of(const BlockWork&, const Residency&, const Target&);

}  // namespace fuse::schedule
