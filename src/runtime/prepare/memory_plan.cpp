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

  Placement(const MemoryPlanner& planner, std::span<const std::int64_t> sizes)
      : planner_(planner), sizes_(sizes), offsets_(sizes.size(), 0), placed_(sizes.size()), seen_(placed_) {}

  std::int64_t size(Index i) const { return sizes_[i]; }

  /// Memory below `limit` that nobody uses while range `i` is live, in ascending order.
  const std::vector<Gap>& gaps(Index i, std::int64_t limit) {
    taken_.clear();
    const auto meet = [&](std::span<const Index> others) {
      for (const Index other : others) {
        if (!placed_[other] || seen_[other] == i + 1) continue;
        seen_[other] = i + 1;
        taken_.push_back({offsets_[other], offsets_[other] + sizes_[other]});
      }
    };
    const LiveRange& range = planner_.ranges_[i];
    each_step(range.live, [&](std::uint32_t step) { meet(planner_.defined_at_[step]); });
    each_definition(range, [&](std::uint32_t step) { meet(planner_.at_step_[step]); });
    std::sort(taken_.begin(), taken_.end(), [](Gap a, Gap b) { return a.begin < b.begin; });
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
  const MemoryPlanner& planner_;
  const std::span<const std::int64_t> sizes_;
  std::vector<std::int64_t> offsets_;
  std::vector<Index> placed_, seen_;  // seen_: 1 + the range whose gaps counted it last
  std::vector<Gap> taken_, gaps_;
  std::int64_t total_ = 0;
};

MemoryPlanner::MemoryPlanner(std::vector<LiveRange> ranges)
    : ranges_(std::move(ranges)), order_(ranges_.size()) {
  std::size_t steps = 0;
  for (const LiveRange& range : ranges_) {
    if (!well_formed(range)) bad_ranges();
    for (const StepSpan& span : range.live) steps = std::max<std::size_t>(steps, span.last + 1);
  }
  const auto listed = [&](auto&& steps_of) {
    return Lists<Index>::grouped(steps, [&](auto&& add) {
      for (Index i = 0; i < ranges_.size(); ++i) {
        if (!ranges_[i].live.empty()) steps_of(ranges_[i], [&](std::uint32_t step) { add(step, i); });
      }
    });
  };
  at_step_ = listed([](const LiveRange& range, auto&& f) { each_step(range.live, f); });
  defined_at_ = listed([](const LiveRange& range, auto&& f) { each_definition(range, f); });
  std::iota(order_.begin(), order_.end(), Index{0});
  std::stable_sort(order_.begin(), order_.end(),
                   [&](Index a, Index b) { return ranges_[a].start < ranges_[b].start; });
}

/// The largest first, each in the smallest gap that holds it.
MemoryPlanner::Placement MemoryPlanner::best_fit(Placement placement, std::int64_t sum) const {
  std::vector<Index> order = order_;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return placement.size(a) > placement.size(b); });
  for (const Index i : order) {
    if (placement.size(i) == 0) break;
    Placement::Gap best{0, std::numeric_limits<std::int64_t>::max()};
    for (const Placement::Gap& gap : placement.gaps(i, sum)) {
      const bool fits = gap.end - gap.begin >= placement.size(i);
      if (fits && gap.end - gap.begin < best.end - best.begin) best = gap;
    }
    placement.put(i, best.begin);
  }
  return placement;
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
  const auto overlap = [&](Index a, Index b) {
    return offsets[a] < offsets[b] + ranges_[b].bytes && offsets[b] < offsets[a] + ranges_[a].bytes;
  };
  for (Index i = 0; i < ranges_.size(); ++i) {
    bool apart = true;
    const auto meet = [&](std::span<const Index> others) {
      for (const Index other : others) apart = apart && (other == i || !overlap(i, other));
    };
    each_step(ranges_[i].live, [&](std::uint32_t step) { meet(defined_at_[step]); });
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

MemoryPlan MemoryPlanner::plan(std::int64_t alignment) const {
  const auto [sizes, sum] = sizes_of(ranges_, alignment);
  MemoryPlan plan;
  std::vector<std::int64_t> held(at_step_.size(), 0);
  for (Index i = 0; i < ranges_.size(); ++i) {
    if (sizes[i] == 0) continue;
    each_step(ranges_[i].held, [&, size = sizes[i]](std::uint32_t step) {
      plan.lower_bound = std::max(plan.lower_bound, held[step] += size);
    });
  }
  Placement greedy = best_fit(Placement(*this, sizes), sum);
  Placement tight(*this, sizes);
  const bool better = greedy.total() > plan.lower_bound && two_ended(tight, plan.lower_bound);
  Placement& chosen = better ? tight : greedy;
  plan.offsets = std::move(chosen.offsets());
  plan.total = chosen.total();
  return plan;
}

MemoryPlan plan_memory(std::span<const LiveRange> ranges, std::int64_t alignment) {
  return MemoryPlanner({ranges.begin(), ranges.end()}).plan(alignment);
}

}  // namespace fuse::runtime
