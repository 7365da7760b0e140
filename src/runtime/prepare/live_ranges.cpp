// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/live_ranges.hpp"

#include <algorithm>

namespace fuse::runtime {

using schedule::TaskId;

LiveRanges::LiveRanges(const schedule::StreamPlan& plan)
    : plan_(plan),
      before_(plan),
      on_stream_(static_cast<std::size_t>(plan.streams)),
      dispatched_(plan.order.size()) {
  for (std::uint32_t i = 0; i < plan.order.size(); ++i) {
    dispatched_[plan.order[i]] = i;
    on_stream_[plan.stream[plan.order[i]]].push_back(plan.order[i]);
  }
  std::uint32_t first = 0;
  for (const auto& tasks : on_stream_) {
    first_of_stream_.push_back(first);
    first += static_cast<std::uint32_t>(tasks.size());
  }
}

LiveRange LiveRanges::of(std::int64_t bytes, std::span<const TaskId> users) const {
  if (users.empty()) return {};
  const auto earlier = [&](TaskId a, TaskId b) { return dispatched_[a] < dispatched_[b]; };
  const TaskId maker = *std::min_element(users.begin(), users.end(), earlier);
  return of(bytes, users, {&maker, 1});
}

LiveRange LiveRanges::of(std::int64_t bytes, std::span<const TaskId> users,
                         std::span<const TaskId> makers) const {
  LiveRange range;
  range.bytes = bytes;
  range.defined = number(makers.front());
  range.start = dispatched_[makers.front()];
  for (const TaskId maker : makers.subspan(1)) {
    range.also_defined.push_back(number(maker));
    range.start = std::min(range.start, dispatched_[maker]);
  }
  // For each stream, how many of its tasks have ended once all users have.
  std::vector<std::uint32_t> used(before_.streams(), 0);
  for (const TaskId user : users) {
    std::uint32_t& count = used[plan_.stream[user]];
    count = std::max(count, before_.position(user) + 1);
  }
  for (std::size_t s = 0; s < on_stream_.size(); ++s) {
    const std::vector<TaskId>& tasks = on_stream_[s];
    const std::uint32_t first = first_of_stream_[s];
    const auto add = [&](std::vector<StepSpan>& spans, std::uint32_t from, std::uint32_t to) {
      if (from < to) spans.push_back({first + from, first + to - 1});
    };
    // Along a stream clocks grow: what comes after all users stays so.
    const auto behind_all = std::partition_point(tasks.begin(), tasks.end(), [&](TaskId task) {
      const auto clock = before_.clock(task);
      for (std::size_t t = 0; t < used.size(); ++t) {
        if (clock[t] < used[t]) return true;
      }
      return false;
    });
    const auto end = static_cast<std::uint32_t>(behind_all - tasks.begin());
    std::uint32_t begin = end;
    for (const TaskId maker : makers) begin = std::min(begin, before_.clock(maker)[s]);
    add(range.live, begin, end);

    const auto behind_maker = std::partition_point(tasks.begin(), tasks.end(), [&](TaskId task) {
      return std::none_of(makers.begin(), makers.end(),
                          [&](TaskId maker) { return task == maker || before_(maker, task); });
    });
    std::uint32_t needed = 0;
    for (const TaskId user : users) {
      const bool here = plan_.stream[user] == s;
      needed = std::max(needed, here ? before_.position(user) + 1 : before_.clock(user)[s]);
    }
    add(range.held, static_cast<std::uint32_t>(behind_maker - tasks.begin()), needed);
  }
  return range;
}

}  // namespace fuse::runtime
