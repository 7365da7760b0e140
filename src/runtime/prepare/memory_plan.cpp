// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/memory_plan.hpp"

#include <algorithm>
#include <fuse/error.hpp>
#include <limits>
#include <numeric>
#include <utility>

namespace fuse::runtime {
namespace {

template <class F>
void each_step(const std::vector<StepSpan>& spans, F&& f) {
  for (const StepSpan& span : spans) {
    for (std::uint32_t step = span.first; step <= span.last; ++step) f(step);
  }
}

template <class F>
void each_definition(const LiveRange& range, F&& f) {
  f(range.defined);
  for (const std::uint32_t step : range.also_defined) f(step);
}

[[noreturn]] void bad_ranges() {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "a live range of the memory plan is malformed"});
}

/// Without steps it is live at, it has no memory.
bool well_formed(const LiveRange& range) {
  const auto forward = [](const StepSpan& span) { return span.first <= span.last; };
  const auto is_live = [&](std::uint32_t step) {
    return std::any_of(range.live.begin(), range.live.end(),
                       [&](const StepSpan& span) { return span.first <= step && step <= span.last; });
  };
  return std::all_of(range.live.begin(), range.live.end(), forward) &&
         std::all_of(range.held.begin(), range.held.end(), forward) &&
         (range.live.empty() ? range.bytes == 0
                             : is_live(range.defined) && std::all_of(range.also_defined.begin(),
                                                                     range.also_defined.end(), is_live));
}

/// Rounded up to the alignment; the sum is the second. Throws invalid_extent where that overflows.
std::pair<std::vector<std::int64_t>, std::int64_t> sizes_of(std::span<const LiveRange> ranges,
                                                            std::int64_t alignment) {
  std::vector<std::int64_t> sizes;
  sizes.reserve(ranges.size());
  std::int64_t sum = 0;
  for (const LiveRange& range : ranges) {
    if (range.bytes < 0 || (range.bytes > 0 && range.live.empty())) bad_ranges();
    const bool fits = range.bytes <= std::numeric_limits<std::int64_t>::max() - alignment;
    sizes.push_back(fits ? (range.bytes + alignment - 1) & -alignment : 0);
    if (!fits || __builtin_add_overflow(sum, sizes.back(), &sum)) {
      throw Error(
          {.code = ErrorCode::invalid_extent, .message = "the temporaries overflow 63 bits of bytes"});
    }
  }
  return {std::move(sizes), sum};
}

}  // namespace

/// Puts ranges down one at a time.
class MemoryPlanner::Placement {
 public:
  struct Gap {
    std::int64_t begin = 0, end = 0;
  };

  Placement(const Lists<Index>& meeting, std::span<const std::int64_t> sizes)
      : meeting_(meeting), sizes_(sizes), offsets_(sizes.size(), 0), placed_(sizes.size()) {}

  std::int64_t size(Index i) const { return sizes_[i]; }

  /// Memory below `limit` that nobody uses while range `i` is live, in ascending order.
  const std::vector<Gap>& gaps(Index i, std::int64_t limit) {
    taken_.clear();
    for (const Index other : meeting_[i])
      if (placed_[other]) taken_.push_back({offsets_[other], offsets_[other] + sizes_[other]});
    const auto lower = [](Gap a, Gap b) { return a.begin < b.begin; };
    if (taken_.size() > 1) std::sort(taken_.begin(), taken_.end(), lower);
    gaps_.clear();
    std::int64_t at = 0;
    for (const Gap& taken : taken_) {
      if (taken.begin > at) gaps_.push_back({at, taken.begin});
      at = std::max(at, taken.end);
    }
    if (at < limit) gaps_.push_back({at, limit});
    return gaps_;
  }

  void put(Index i, std::int64_t offset) {
    offsets_[i] = offset;
    placed_[i] = 1;
    total_ = std::max(total_, offset + sizes_[i]);
  }

  std::int64_t total() const { return total_; }
  std::vector<std::int64_t>& offsets() { return offsets_; }

 private:
  const Lists<Index>& meeting_;
  const std::span<const std::int64_t> sizes_;
  std::vector<std::int64_t> offsets_;
  std::vector<char> placed_;
  std::vector<Gap> taken_, gaps_;
  std::int64_t total_ = 0;
};

MemoryPlanner::MemoryPlanner(std::vector<LiveRange> ranges)
    : ranges_(std::move(ranges)), order_(ranges_.size()), rank_(ranges_.size()) {
  for (const LiveRange& range : ranges_) {
    if (!well_formed(range)) bad_ranges();
    for (const auto* const spans : {&range.live, &range.held})
      for (const StepSpan& span : *spans) steps_ = std::max(steps_, span.last + 1);
  }
  const auto listed = [&](auto&& steps_of) {
    return Lists<Index>::grouped(steps_, [&](auto&& add) {
      for (Index i = 0; i < ranges_.size(); ++i) {
        if (!ranges_[i].live.empty()) steps_of(ranges_[i], [&](std::uint32_t step) { add(step, i); });
      }
    });
  };
  const Lists<Index> live_at = listed([](const LiveRange& range, auto&& f) { each_step(range.live, f); });
  const Lists<Index> defined_at = listed([](const LiveRange& range, auto&& f) { each_definition(range, f); });
  std::vector<Index> seen(ranges_.size());  // 1 + the range that met it last
  for (Index i = 0; i < ranges_.size(); ++i) {
    meeting_.begin();
    seen[i] = i + 1;
    const auto meet = [&](std::span<const Index> others) {
      for (const Index other : others)
        if (std::exchange(seen[other], i + 1) != i + 1) meeting_.push_back(other);
    };
    if (ranges_[i].live.empty()) continue;
    each_step(ranges_[i].live, [&](std::uint32_t step) { meet(defined_at[step]); });
    each_definition(ranges_[i], [&](std::uint32_t step) { meet(live_at[step]); });
  }
  std::iota(order_.begin(), order_.end(), Index{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](Index a, Index b) { return ranges_[a].start < ranges_[b].start; });
  for (Index i = 0; i < order_.size(); ++i) rank_[order_[i]] = i;
  largest_first_ = order_;
}

/// The largest first, each in the smallest gap that holds it.
void MemoryPlanner::best_fit(Placement& placement, std::int64_t sum) {
  const auto before = [&](Index a, Index b) {
    return placement.size(a) != placement.size(b) ? placement.size(a) > placement.size(b)
                                                  : rank_[a] < rank_[b];
  };
  // Other dims seldom change which of two is larger.
  if (!std::is_sorted(largest_first_.begin(), largest_first_.end(), before))
    std::sort(largest_first_.begin(), largest_first_.end(), before);
  for (const Index i : largest_first_) {
    if (placement.size(i) == 0) break;
    Placement::Gap best{0, std::numeric_limits<std::int64_t>::max()};
    for (const Placement::Gap& gap : placement.gaps(i, sum)) {
      const bool fits = gap.end - gap.begin >= placement.size(i);
      if (fits && gap.end - gap.begin < best.end - best.begin) best = gap;
    }
    placement.put(i, best.begin);
  }
}

/// Places ranges in order of their first use, at the bottom and at the top of `limit` bytes by turns: a
/// chain, in which only neighbours meet, always fits its lower bound so. False when one finds no room.
bool MemoryPlanner::two_ended(Placement& placement, std::int64_t limit) const {
  bool top = false;
  for (const Index i : order_) {
    if (placement.size(i) == 0) continue;
    const std::vector<Placement::Gap>& gaps = placement.gaps(i, limit);
    const auto fits = [&](const Placement::Gap& gap) { return gap.end - gap.begin >= placement.size(i); };
    if (top) {
      const auto gap = std::find_if(gaps.rbegin(), gaps.rend(), fits);
      if (gap == gaps.rend()) return false;
      placement.put(i, gap->end - placement.size(i));
    } else {
      const auto gap = std::find_if(gaps.begin(), gaps.end(), fits);
      if (gap == gaps.end()) return false;
      placement.put(i, gap->begin);
    }
    top = !top;
  }
  return true;
}

bool MemoryPlanner::holds(std::span<const std::int64_t> offsets) const {
  for (Index i = 0; i < ranges_.size(); ++i) {
    const bool apart = std::ranges::all_of(meeting_[i], [&](Index other) {
      return offsets[i] >= offsets[other] + ranges_[other].bytes ||
             offsets[other] >= offsets[i] + ranges_[i].bytes;
    });
    if (!apart) return false;
  }
  return true;
}

std::int64_t MemoryPlanner::end(std::span<const std::int64_t> offsets) const {
  std::int64_t end = 0;
  for (Index i = 0; i < ranges_.size(); ++i)
    if (ranges_[i].bytes > 0) end = std::max(end, offsets[i] + ranges_[i].bytes);
  return end;
}

std::int64_t MemoryPlanner::lower_bound(std::span<const std::int64_t> sizes) const {
  std::vector<std::int64_t> change(steps_ + 1);  // of the bytes that are held, from the step before
  for (Index i = 0; i < ranges_.size(); ++i) {
    for (const StepSpan& span : ranges_[i].held) {
      change[span.first] += sizes[i];
      change[span.last + 1] -= sizes[i];
    }
  }
  std::int64_t held = 0, most = 0;
  for (const std::int64_t each : change) most = std::max(most, held += each);
  return most;
}

MemoryPlan MemoryPlanner::plan(std::int64_t alignment) {
  const auto [sizes, sum] = sizes_of(ranges_, alignment);
  MemoryPlan plan{.offsets = {}, .total = 0, .lower_bound = lower_bound(sizes)};
  const auto take = [&](Placement& placement) {
    plan.offsets = std::move(placement.offsets());
    plan.total = placement.total();
  };
  Placement greedy(meeting_, sizes);
  best_fit(greedy, sum);
  if (greedy.total() > plan.lower_bound) {
    Placement tight(meeting_, sizes);
    if (two_ended(tight, plan.lower_bound)) {
      take(tight);
      return plan;
    }
  }
  take(greedy);
  return plan;
}

MemoryPlan plan_memory(std::span<const LiveRange> ranges, std::int64_t alignment) {
  return MemoryPlanner({ranges.begin(), ranges.end()}).plan(alignment);
}

}  // namespace fuse::runtime
