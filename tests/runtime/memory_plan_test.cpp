// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/memory_plan.hpp"

#include <algorithm>
#include <fuse/error.hpp>
#include <random>

#include "support/catch.hpp"

using fuse::runtime::LiveRange;
using fuse::runtime::MemoryPlan;
using fuse::runtime::MemoryPlanner;
using fuse::runtime::plan_memory;

namespace {

std::int64_t rounded(std::int64_t bytes) { return (bytes + 255) / 256 * 256; }

/// Requires what every plan keeps: alignment, no overlap of ranges that meet, totals within their bounds.
void check(const std::vector<LiveRange>& ranges, const MemoryPlan& plan) {
  REQUIRE(plan.offsets.size() == ranges.size());
  std::int64_t sum = 0, end = 0;
  for (std::size_t i = 0; i < ranges.size(); ++i) {
    sum += rounded(ranges[i].bytes);
    REQUIRE(plan.offsets[i] % 256 == 0);
    REQUIRE(plan.offsets[i] >= 0);
    if (ranges[i].bytes > 0) end = std::max(end, plan.offsets[i] + rounded(ranges[i].bytes));
    for (std::size_t j = 0; j < i; ++j) {
      const auto live_at_start_of = [&](std::size_t a, std::size_t b) {
        return std::any_of(ranges[a].live.begin(), ranges[a].live.end(),
                           [&](const fuse::runtime::StepSpan& span) {
                             return span.first <= ranges[b].defined && ranges[b].defined <= span.last;
                           });
      };
      const bool meet = live_at_start_of(i, j) || live_at_start_of(j, i);
      if (!meet || ranges[i].bytes == 0 || ranges[j].bytes == 0) continue;
      const bool apart = plan.offsets[i] + ranges[i].bytes <= plan.offsets[j] ||
                         plan.offsets[j] + ranges[j].bytes <= plan.offsets[i];
      INFO("ranges " << i << " and " << j);
      REQUIRE(apart);
    }
  }
  REQUIRE(plan.total == end);
  REQUIRE(plan.total <= sum);
  REQUIRE(plan.total >= plan.lower_bound);
}

}  // namespace

TEST_CASE("memory plan: random ranges never overlap", "[runtime]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
  for (int round = 0; round < 300; ++round) {
    std::vector<LiveRange> ranges(1 + below(40));
    const std::uint32_t steps = 1 + below(20), longest = 1 + below(8);
    for (LiveRange& range : ranges) {
      const std::uint32_t first = below(steps);
      range = {below(5) == 0 ? 0 : below(4000), first, first + below(longest)};
    }
    check(ranges, plan_memory(ranges));
  }
}

TEST_CASE("memory plan: a chain takes its lower bound", "[runtime]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int round = 0; round < 200; ++round) {
    std::vector<LiveRange> ranges(1 + random() % 30);
    std::int64_t widest = rounded(0), previous = 0;
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      const auto step = static_cast<std::uint32_t>(i);
      ranges[i] = {1 + static_cast<std::int64_t>(random() % 5000), step, step + 1};
      widest = std::max(widest, previous + rounded(ranges[i].bytes));
      previous = rounded(ranges[i].bytes);
    }
    const MemoryPlan plan = plan_memory(ranges);
    check(ranges, plan);
    REQUIRE(plan.lower_bound == widest);
    REQUIRE(plan.total == plan.lower_bound);
  }
}

TEST_CASE("memory plan: known cases", "[runtime]") {
  REQUIRE(plan_memory({}).total == 0);
  const std::vector<LiveRange> empty = {{0, 0, 3}};
  REQUIRE(plan_memory(empty).total == 0);
  // The example of the header.
  const std::vector<LiveRange> three = {{1000, 0, 1}, {500, 1, 2}, {1000, 2, 3}};
  REQUIRE(plan_memory(three).offsets == std::vector<std::int64_t>{0, 1024, 0});
  REQUIRE(plan_memory(three).total == 1536);
  // Largest first alone would give 18 units: the 1 would lie on top of 10 and of 9 + 8.
  const std::vector<LiveRange> trap = {{2560, 0, 1}, {256, 1, 2}, {2048, 2, 3}, {2304, 3, 4}};
  REQUIRE(plan_memory(trap).total == 17 * 256);
  // In order of use the second range would come to lie on top of the first, and the last on top of both.
  const std::vector<LiveRange> late = {{512, 0, 1}, {1024, 0, 2}, {256, 1, 2}, {1024, 2, 2}};
  REQUIRE(plan_memory(late).total == 9 * 256);
  // All at once: the sum.
  const std::vector<LiveRange> together = {{256, 0, 0}, {512, 0, 0}, {1, 0, 0}};
  REQUIRE(plan_memory(together).total == 1024);
}

TEST_CASE("memory plan: 20000 temporaries of a long graph", "[runtime]") {
  std::vector<LiveRange> ranges;
  for (std::uint32_t i = 0; i < 20000; ++i) ranges.push_back({1 + i % 7 * 1000, i, i + 1 + i % 3});
  const MemoryPlan plan = plan_memory(ranges);
  REQUIRE(plan.total >= plan.lower_bound);
  REQUIRE(plan.total <= 2 * plan.lower_bound);
}

TEST_CASE("memory plan: sizes that overflow are refused", "[runtime]") {
  const std::int64_t huge = std::numeric_limits<std::int64_t>::max();
  const std::vector<LiveRange> one = {{huge, 0, 1}};
  const std::vector<LiveRange> two = {{huge / 2 + 1, 0, 1}, {huge / 2 + 1, 0, 1}};
  REQUIRE_THROWS_WITH(plan_memory(one), "the temporaries overflow 63 bits of bytes");
  REQUIRE_THROWS_WITH(plan_memory(two), "the temporaries overflow 63 bits of bytes");
}

TEST_CASE("memory plan: other sizes are planned as if they were the first", "[runtime]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const auto below = [&](unsigned n) { return static_cast<std::uint32_t>(random() % n); };
  std::vector<LiveRange> ranges(30);
  for (LiveRange& range : ranges) {
    const std::uint32_t first = below(20);
    range = {0, first, first + below(6)};
  }
  MemoryPlanner planner(ranges);
  for (int round = 0; round < 50; ++round) {
    for (std::size_t i = 0; i < ranges.size(); ++i) {
      ranges[i].bytes = below(3) == 0 ? 0 : below(4000);
      planner.resize(i, ranges[i].bytes);
    }
    const MemoryPlan again = planner.plan(), fresh = plan_memory(ranges);
    check(ranges, again);
    CHECK(again.offsets == fresh.offsets);
    CHECK(again.total == fresh.total);
    CHECK(again.lower_bound == fresh.lower_bound);
  }
  planner.resize(0, std::numeric_limits<std::int64_t>::max());
  CHECK_THROWS_AS(planner.plan(), fuse::Error);
  MemoryPlanner never({LiveRange()});
  never.resize(0, 1);  // it is live at no step
  CHECK_THROWS_AS(never.plan(), fuse::Error);
}
