// A workspace for all dims: where its memories lie when each has the most bytes that any dims give it. It is
// valid whatever the streams are, since memories share bytes only where dependencies alone keep their uses
// apart. So its size is a bound of the workspace, which prepare keeps: where a layout made for the dims would
// be larger, this one is taken.
//
// Before:  t0 f32[B, 64], written by step 0, read by 1; t1 by 1 and 2; t2 by 2 and 3; B at most 100
// After:   t0 at 0, t1 at 25600, t2 at 0; total 51200
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "plan/plan.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/memory_plan.hpp"
#include "runtime/prepare/run_structure.hpp"
#include "runtime/prepare/value_locations.hpp"

namespace fuse::runtime {

struct FixedLayout {
  std::vector<std::int64_t> offsets{};  ///< by value, of those that are a memory of the workspace
  std::vector<std::int64_t> scratch{};  ///< by the value that a GEMM makes, of its scratch
  std::int64_t total = 0;

  /// The offset of each memory of the workspace, then of each scratch, as RunStructure has them.
  std::vector<std::int64_t> offsets_for(const schedule::Plan& plan, std::span<const ReadyStep> steps,
                                        std::span<const Scratch> scratch_of_steps,
                                        const ValueLocations& locations) const;
};

/// `gemm_scratch`: the most that a GEMM asks for. None where a memory has no bound, and for plans of more
/// than 2,048 steps, for which it would take long.
std::optional<FixedLayout> fixed_layout(const schedule::Plan&, std::int64_t gemm_scratch);

}  // namespace fuse::runtime
