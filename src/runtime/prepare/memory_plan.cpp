// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/memory_plan.hpp"

#include <algorithm>
#include <fuse/error.hpp>
#include <limits>
#include <numeric>

namespace fuse::runtime {
namespace {

using Index = std::uint32_t;

struct Arena {
  std::span<const LiveRange> ranges;
  std::vector<std::int64_t> sizes;                      // rounded up; 0: takes no memory
  std::vector<std::vector<Index>> at_step, defined_at;  // ranges live at a step, and those that it begins
  std::vector<Index> order;                             // the ranges that take memory, by (start, index)
};

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

struct Gap {
  std::int64_t begin, end;
};

/// Puts ranges down one at a time.
class Placement {
 public:
  explicit Placement(const Arena& arena)
      : arena_(arena), offsets_(arena.sizes.size(), 0), placed_(arena.sizes.size()), seen_(placed_) {}

  /// Memory below `limit` that nobody uses while range `i` is live, in ascending order.
  const std::vector<Gap>& gaps(Index i, std::int64_t limit) {
    taken_.clear();
    const auto meet = [&](const std::vector<Index>& others) {
      for (const Index other : others) {
        if (!placed_[other] || seen_[other] == i + 1) continue;
        seen_[other] = i + 1;
        taken_.push_back({offsets_[other], offsets_[other] + arena_.sizes[other]});
      }
    };
    each_step(arena_.ranges[i].live, [&](std::uint32_t step) { meet(arena_.defined_at[step]); });
    each_definition(arena_.ranges[i], [&](std::uint32_t step) { meet(arena_.at_step[step]); });
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
    total_ = std::max(total_, offset + arena_.sizes[i]);
  }

  std::int64_t total() const { return total_; }
  std::vector<std::int64_t>& offsets() { return offsets_; }

 private:
  const Arena& arena_;
  std::vector<std::int64_t> offsets_;
  std::vector<Index> placed_, seen_;  // seen_: 1 + the range whose gaps counted it last
  std::vector<Gap> taken_, gaps_;
  std::int64_t total_ = 0;
};

/// The largest first, each in the smallest gap that holds it.
Placement best_fit(const Arena& arena, std::int64_t sum) {
  std::vector<Index> order = arena.order;
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return arena.sizes[a] > arena.sizes[b]; });
  Placement placement(arena);
  for (const Index i : order) {
    Gap best{0, std::numeric_limits<std::int64_t>::max()};
    for (const Gap& gap : placement.gaps(i, sum)) {
      const bool fits = gap.end - gap.begin >= arena.sizes[i];
      if (fits && gap.end - gap.begin < best.end - best.begin) best = gap;
    }
    placement.put(i, best.begin);
  }
  return placement;
}

/// Places ranges in order of their first use, at the bottom and at the top of `limit` bytes by turns: a
/// chain, in which only neighbours meet, always fits its lower bound so. False when one finds no room.
bool two_ended(Placement& placement, const Arena& arena, std::int64_t limit) {
  bool top = false;
  for (const Index i : arena.order) {
    const std::vector<Gap>& gaps = placement.gaps(i, limit);
    const auto fits = [&](const Gap& gap) { return gap.end - gap.begin >= arena.sizes[i]; };
    if (top) {
      const auto gap = std::find_if(gaps.rbegin(), gaps.rend(), fits);
      if (gap == gaps.rend()) return false;
      placement.put(i, gap->end - arena.sizes[i]);
    } else {
      const auto gap = std::find_if(gaps.begin(), gaps.end(), fits);
      if (gap == gaps.end()) return false;
      placement.put(i, gap->begin);
    }
    top = !top;
  }
  return true;
}

[[noreturn]] void bad_ranges(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

bool well_formed(const LiveRange& range) {
  const auto forward = [](const StepSpan& span) { return span.first <= span.last; };
  const auto is_live = [&](std::uint32_t step) {
    return std::any_of(range.live.begin(), range.live.end(),
                       [&](const StepSpan& span) { return span.first <= step && step <= span.last; });
  };
  return range.bytes >= 0 && std::all_of(range.live.begin(), range.live.end(), forward) &&
         std::all_of(range.held.begin(), range.held.end(), forward) &&
         (range.bytes == 0 || (is_live(range.defined) &&
                               std::all_of(range.also_defined.begin(), range.also_defined.end(), is_live)));
}

Arena make_arena(std::span<const LiveRange> ranges, std::int64_t alignment, std::int64_t& sum) {
  Arena arena{.ranges = ranges, .sizes = {}, .at_step = {}, .defined_at = {}, .order = {}};
  std::uint32_t steps = 0;
  for (const LiveRange& range : ranges) {
    if (!well_formed(range)) bad_ranges("a live range of the memory plan is malformed");
    if (range.bytes > std::numeric_limits<std::int64_t>::max() - alignment) sum = -1;
    const std::int64_t size = sum < 0 ? 0 : (range.bytes + alignment - 1) & -alignment;
    if (sum < 0 || __builtin_add_overflow(sum, size, &sum)) {
      throw Error(
          {.code = ErrorCode::invalid_extent, .message = "the temporaries overflow 63 bits of bytes"});
    }
    arena.sizes.push_back(size);
    for (const StepSpan& span : range.live) steps = std::max(steps, span.last + 1);
  }
  arena.at_step.resize(steps);
  arena.defined_at.resize(steps);
  for (Index i = 0; i < ranges.size(); ++i) {
    if (arena.sizes[i] == 0) continue;
    arena.order.push_back(i);
    each_step(ranges[i].live, [&](std::uint32_t step) { arena.at_step[step].push_back(i); });
    each_definition(ranges[i], [&](std::uint32_t step) { arena.defined_at[step].push_back(i); });
  }
  std::stable_sort(arena.order.begin(), arena.order.end(),
                   [&](Index a, Index b) { return ranges[a].start < ranges[b].start; });
  return arena;
}

}  // namespace

MemoryPlan plan_memory(std::span<const LiveRange> ranges, std::int64_t alignment) {
  std::int64_t sum = 0;
  const Arena arena = make_arena(ranges, alignment, sum);
  MemoryPlan plan;
  std::vector<std::int64_t> held(arena.at_step.size(), 0);
  for (Index i = 0; i < ranges.size(); ++i) {
    each_step(ranges[i].held, [&](std::uint32_t step) {
      plan.lower_bound = std::max(plan.lower_bound, held[step] += arena.sizes[i]);
    });
  }
  Placement greedy = best_fit(arena, sum);
  Placement tight(arena);
  const bool better = greedy.total() > plan.lower_bound && two_ended(tight, arena, plan.lower_bound);
  Placement& chosen = better ? tight : greedy;
  plan.offsets = std::move(chosen.offsets());
  plan.total = chosen.total();
  return plan;
}

}  // namespace fuse::runtime
