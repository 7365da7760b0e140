// Values of steps on streams share memory only where no execution has both live.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/live_ranges.hpp"

#include <algorithm>
#include <random>

#include "support/catch.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::runtime;   // NOLINT
using namespace fuse::schedule;  // NOLINT

namespace {

const Target target = target_profile("h200");

bool contains(const std::vector<StepSpan>& spans, std::uint32_t step) {
  return std::any_of(spans.begin(), spans.end(),
                     [&](const StepSpan& s) { return s.first <= step && step <= s.last; });
}

struct Example {
  std::vector<Task> tasks;
  std::vector<std::vector<TaskId>> users;  // of values; the first made it
};

/// Each task makes a value that later tasks read.
Example random_example(std::mt19937& random) {
  Example e;
  e.tasks.resize(2 + random() % 25);
  for (TaskId t = 0; t < e.tasks.size(); ++t) {
    e.tasks[t].seconds = 1e-5;
    e.tasks[t].share = 0.25;
    e.users.push_back({t});
    for (int reads = 0; reads < 2 && t > 0; ++reads) {
      if (random() % 3 == 0) continue;
      const auto value = static_cast<TaskId>(random() % t);
      e.tasks[t].after.push_back(value);
      e.users[value].push_back(t);
    }
    std::sort(e.tasks[t].after.begin(), e.tasks[t].after.end());
  }
  return e;
}

}  // namespace

TEST_CASE("live ranges: what shares memory is never live at one time", "[runtime][streams]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  int shared = 0;
  for (int round = 0; round < 200; ++round) {
    const Example e = random_example(random);
    const StreamPlan plan =
        plan_streams(e.tasks, {.max_streams = static_cast<int>(1 + random() % 4)}, target);
    const HappensBefore before(plan);
    const LiveRanges live(plan);
    std::vector<LiveRange> ranges;
    for (const auto& users : e.users) ranges.push_back(live.of(256 * (1 + random() % 8), users));
    const MemoryPlan memory = plan_memory(ranges);
    CHECK(memory.total >= memory.lower_bound);
    const auto all_before = [&](std::size_t a, std::size_t b) {
      return std::all_of(e.users[a].begin(), e.users[a].end(),
                         [&](TaskId user) { return before(user, e.users[b][0]); });
    };
    for (std::size_t a = 0; a < ranges.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart = memory.offsets[a] + ranges[a].bytes <= memory.offsets[b] ||
                           memory.offsets[b] + ranges[b].bytes <= memory.offsets[a];
        shared += !apart;
        if (!apart) REQUIRE((all_before(a, b) || all_before(b, a)));
        // The two that meet are the two of which neither is over before the other begins.
        const bool meet =
            contains(ranges[a].live, ranges[b].defined) || contains(ranges[b].live, ranges[a].defined);
        REQUIRE(meet == !(all_before(a, b) || all_before(b, a)));
      }
    }
  }
  CHECK(shared > 100);
}

TEST_CASE("live ranges: memory that several steps make, in no order, is shared by nothing beside any of them",
          "[runtime][streams]") {
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  int shared = 0, together = 0;
  for (int round = 0; round < 200; ++round) {
    const Example e = random_example(random);
    // Values of two tasks at a time lie in one memory.
    struct Memory {
      std::vector<TaskId> makers, users;
    };
    std::vector<Memory> memories;
    std::vector<TaskId> left(e.tasks.size());
    for (TaskId t = 0; t < left.size(); ++t) left[t] = t;
    std::shuffle(left.begin(), left.end(), random);
    for (std::size_t i = 0; i < left.size(); ++i) {
      if (i % 3 != 1) memories.emplace_back();
      memories.back().makers.push_back(left[i]);
      const std::vector<TaskId>& users = e.users[left[i]];
      memories.back().users.insert(memories.back().users.end(), users.begin(), users.end());
    }
    const StreamPlan plan =
        plan_streams(e.tasks, {.max_streams = static_cast<int>(1 + random() % 4)}, target);
    const HappensBefore before(plan);
    const LiveRanges live(plan);
    std::vector<LiveRange> ranges;
    for (const Memory& m : memories) ranges.push_back(live.of(256 * (1 + random() % 8), m.users, m.makers));
    const MemoryPlan memory = plan_memory(ranges);
    CHECK(memory.total >= memory.lower_bound);
    const auto all_before = [&](std::size_t a, std::size_t b) {
      return std::all_of(memories[a].users.begin(), memories[a].users.end(), [&](TaskId user) {
        return std::all_of(memories[b].makers.begin(), memories[b].makers.end(),
                           [&](TaskId maker) { return before(user, maker); });
      });
    };
    for (std::size_t a = 0; a < ranges.size(); ++a) {
      for (std::size_t b = 0; b < a; ++b) {
        const bool apart = memory.offsets[a] + ranges[a].bytes <= memory.offsets[b] ||
                           memory.offsets[b] + ranges[b].bytes <= memory.offsets[a];
        shared += !apart;
        together += !apart && memories[a].makers.size() + memories[b].makers.size() > 2;
        if (!apart) REQUIRE((all_before(a, b) || all_before(b, a)));
      }
    }
  }
  CHECK(shared > 100);
  CHECK(together > 20);
}

TEST_CASE("live ranges: a chain beside a long step reuses memory", "[runtime][streams]") {
  // 0 makes x; 1 reads it for long, on its own stream; 2 to 9 are a chain.
  std::vector<Task> tasks(10, {.seconds = 1e-5, .share = 0.4});
  for (TaskId t = 1; t < 10; ++t) tasks[t].after = {t == 1 || t == 2 ? 0 : t - 1};
  tasks[1].seconds = 1e-4;
  StreamChoices choices{.max_streams = 2, .order = {}, .stream = {0, 1, 0, 0, 0, 0, 0, 0, 0, 0}};
  const StreamPlan plan = plan_streams(tasks, choices, target);
  const LiveRanges live(plan);
  std::vector<LiveRange> ranges = {live.of(256, std::vector<TaskId>{0, 1, 2})};
  for (TaskId t = 2; t < 9; ++t) ranges.push_back(live.of(256, std::vector<TaskId>{t, t + 1}));
  const MemoryPlan memory = plan_memory(ranges);
  CHECK(memory.total == 3 * 256);  // x, and two by turns
  CHECK(memory.lower_bound == 2 * 256);
}

TEST_CASE("live ranges: on one stream they are spans of steps", "[runtime][streams]") {
  std::vector<Task> tasks(4, {.seconds = 1e-6, .share = 1});
  for (TaskId t = 1; t < 4; ++t) tasks[t].after = {t - 1};
  const StreamPlan plan = plan_streams(tasks, {}, target);
  const LiveRanges live(plan);
  const LiveRange range = live.of(100, std::vector<TaskId>{3, 1});
  REQUIRE(range.live.size() == 1);
  CHECK(range.live[0].first == 1);
  CHECK(range.live[0].last == 3);
  REQUIRE(range.held.size() == 1);
  CHECK(range.held[0].first == 1);
  CHECK(range.held[0].last == 3);
  CHECK(live.of(100, {}).bytes == 0);
}
