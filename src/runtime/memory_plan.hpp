// Where temporaries lie in the workspace: two that are never live at the same step may share memory.
//
// Before:  t0 steps 0-1 1000 B, t1 steps 1-2 500 B, t2 steps 2-3 1000 B
// After:   t0 at 0, t1 at 1024, t2 at 0; total 1536
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace fuse::runtime {

/// Memory that is needed from step `first` to step `last`, both included.
struct LiveRange {
  std::int64_t bytes = 0;
  std::uint32_t first = 0, last = 0;
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< of each range; 0 for an empty one
  std::int64_t total = 0;
  std::int64_t lower_bound = 0;  ///< the most bytes live at one step: no plan takes less
};

constexpr std::int64_t workspace_alignment = 256;

/// Pure. Sizes are rounded up to `alignment`, a power of two. Throws invalid_extent when their sum overflows.
MemoryPlan plan_memory(std::span<const LiveRange> ranges, std::int64_t alignment = workspace_alignment);

}  // namespace fuse::runtime
