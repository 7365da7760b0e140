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
/// The seconds of choices that were made for other dims. Besides segment_seconds it counts what blocks of
/// rows wait for, and what all threads issue, those too that have no element: choosers leave few threads
/// without work. Where memory takes longer than that, it counts a little: of two that move the same, the one
/// with less to do is faster. Not measured.
double seconds_of_any(const ir::Graph&, const Segment&, const KernelChoices&, const Target&);

/// The same for a regional segment of slices, which are known, as are its bytes of shared memory: finding
/// them takes longer than this.
double regional_seconds(const ir::Graph&, const Segment&, const KernelChoices&, const Slices&,
                        std::int64_t shared, const Target&);
constexpr double l2_speed = 2;  ///< how many times the bandwidth of memory the L2 cache has; not measured

/// What the blocks of a regional kernel do. A block does one phase after another, and waits before each but
/// the first. Other blocks of its multiprocessor move what they have while it waits for loads and for other
/// threads of a row; what it stalls counts in full in each wave. None of these times has been measured;
/// flow_of_cached_rows has what was, for blocks of one phase.
struct BlockWork {
  static constexpr double wait = 0.6e-6;   ///< seconds at the barrier before a phase
  static constexpr double turn = 0.05e-6;  ///< and for each turn of a phase but the first
  double moved = 0;                        ///< bytes of all blocks
  double idle = 1e-6;     ///< seconds that a block waits for its first loads, and for rows that threads share
  double stalls = 0;      ///< seconds that a block waits at barriers and for its own turns
  double operations = 0;  ///< of all blocks, two for each instruction
};
double seconds_of(const BlockWork&, const Residency&, const Target&);

}  // namespace fuse::schedule
