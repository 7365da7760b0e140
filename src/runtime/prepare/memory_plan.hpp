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

#include "base/lists.hpp"
#include "runtime/execute/workspace_alignment.hpp"

namespace fuse::runtime {

/// Steps from `first` to `last`, both included.
struct StepSpan {
  std::uint32_t first = 0, last = 0;
};

/// When memory is needed. On one stream that is one span of steps. On several, steps are numbered stream by
/// stream: memory may be in use beside every step that nothing orders before its first use or after its last.
/// Two ranges meet where one is live at the first step of the other.
struct LiveRange {
  LiveRange() = default;
  LiveRange(std::int64_t size, std::uint32_t first, std::uint32_t last)
      : bytes(size), live{{first, last}}, held{{first, last}}, defined(first), start(first) {}
  std::int64_t bytes = 0;
  std::vector<StepSpan> live{};  ///< steps beside which it may be in use
  std::vector<StepSpan> held{};  ///< of these, the ones beside which it is in any case
  std::uint32_t defined = 0;     ///< its first step
  /// Other steps that write it, where several do in no order; live at these too. Ranges meet where one is
  /// live at any of these steps of the other.
  std::vector<std::uint32_t> also_defined{};
  std::uint32_t start = 0;  ///< when that is dispatched
};

struct MemoryPlan {
  std::vector<std::int64_t> offsets;  ///< for each range, its offset; 0 for an empty one
  std::int64_t total = 0;
  std::int64_t lower_bound = 0;  ///< the most bytes held at one step: no plan takes less
};

/// Plans for ranges whose sizes change, and nothing else of them: which ones meet is found once.
class MemoryPlanner {
 public:
  /// Throws internal where a range is malformed.
  explicit MemoryPlanner(std::vector<LiveRange> ranges);

  std::size_t size() const { return ranges_.size(); }
  void resize(std::size_t range, std::int64_t bytes) { ranges_[range].bytes = bytes; }
  /// Whether ranges that meet have no byte in common where they lie so.
  bool holds(std::span<const std::int64_t> offsets) const;
  /// The end of the last one that lies so.
  std::int64_t end(std::span<const std::int64_t> offsets) const;
  /// As plan_memory.
  MemoryPlan plan(std::int64_t alignment = workspace_alignment);

 private:
  class Placement;
  using Index = std::uint32_t;

  std::int64_t lower_bound(std::span<const std::int64_t> sizes) const;
  void best_fit(Placement& placement, std::int64_t sum);
  bool two_ended(Placement& placement, std::int64_t limit) const;

  std::vector<LiveRange> ranges_;
  std::uint32_t steps_ = 0;           // at which ranges are live
  Lists<Index> meeting_;              // for each range, the others that it meets
  std::vector<Index> order_, rank_;   // the ranges by (start, index), and where each of them stands there
  std::vector<Index> largest_first_;  // the same for equal sizes; sorted by the sizes of the last plan
};

/// Pure. Sizes are rounded up to `alignment`, a power of two. Throws invalid_extent when their sum overflows.
MemoryPlan plan_memory(std::span<const LiveRange> ranges, std::int64_t alignment = workspace_alignment);

}  // namespace fuse::runtime
