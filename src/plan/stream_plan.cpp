// SPDX-License-Identifier: Apache-2.0
#include "plan/stream_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fuse/error.hpp>
#include <limits>
#include <numeric>
#include <queue>
#include <utility>

#include "base/lists.hpp"

namespace fuse::schedule {
namespace {

constexpr TaskId no_task = ~TaskId{0};
// A wait for another stream costs what a dependent launch costs. This was not measured on a GPU yet.
constexpr double wait_seconds = 1.5e-6;
// Another order than the plan's keeps other values live, so it has to shorten the run by more than this.
constexpr double least_gain = 0.02;

[[noreturn]] void bad_streams(std::string message) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "streams: " + std::move(message)});
}

/// Vector clocks: for each task and stream, how many tasks of the stream have ended before the task starts.
class Clocks {
 public:
  Clocks(std::size_t tasks, std::size_t streams)
      : streams_(streams),
        clock_(tasks * streams),
        position_(tasks),
        last_(streams, no_task),
        count_(streams) {}

  /// Puts the task after the stream's last one.
  void append(TaskId task, StreamId stream) {
    if (last_[stream] != no_task) std::copy_n(of(last_[stream]), streams_, of(task));
    position_[task] = of(task)[stream] = count_[stream]++;
    last_[stream] = task;
  }
  void wait(TaskId task, TaskId on, StreamId stream_of_on) {
    for (std::size_t s = 0; s < streams_; ++s) of(task)[s] = std::max(of(task)[s], of(on)[s]);
    of(task)[stream_of_on] = std::max(of(task)[stream_of_on], position_[on] + 1);
  }
  bool before(TaskId a, StreamId stream_of_a, TaskId b) { return position_[a] < of(b)[stream_of_a]; }
  TaskId last(std::size_t stream) const { return last_[stream]; }

  std::uint32_t* of(TaskId task) { return clock_.data() + task * streams_; }
  std::vector<std::uint32_t> clocks() && { return std::move(clock_); }
  std::vector<std::uint32_t> positions() && { return std::move(position_); }

 private:
  std::size_t streams_;
  std::vector<std::uint32_t> clock_, position_;
  std::vector<TaskId> last_;
  std::vector<std::uint32_t> count_;
};

std::vector<TaskId> plan_order(std::size_t tasks) {
  std::vector<TaskId> order(tasks);
  std::iota(order.begin(), order.end(), TaskId{0});
  return order;
}

/// The seconds of the longest path from each task's start to the end.
std::vector<double> ranks_of(std::span<const Task> tasks) {
  std::vector<double> rank(tasks.size(), 0);
  for (TaskId t = static_cast<TaskId>(tasks.size()); t-- > 0;) {
    rank[t] += tasks[t].seconds;
    for (const TaskId before : tasks[t].after) rank[before] = std::max(rank[before], rank[t]);
  }
  return rank;
}

/// The next task is always the ready one with the longest path from its start to the end.
std::vector<TaskId> critical_order(std::span<const Task> tasks, const std::vector<double>& rank) {
  std::vector<std::uint32_t> missing(tasks.size());
  for (TaskId t = 0; t < tasks.size(); ++t) missing[t] = static_cast<std::uint32_t>(tasks[t].after.size());
  const auto then = Lists<TaskId>::grouped(tasks.size(), [&](auto&& add) {
    for (TaskId t = 0; t < tasks.size(); ++t) {
      for (const TaskId before : tasks[t].after) add(before, t);
    }
  });
  const auto later = [&](TaskId a, TaskId b) { return rank[a] != rank[b] ? rank[a] < rank[b] : a > b; };
  std::priority_queue<TaskId, std::vector<TaskId>, decltype(later)> ready(later);
  for (TaskId t = 0; t < tasks.size(); ++t) {
    if (missing[t] == 0) ready.push(t);
  }
  std::vector<TaskId> order;
  order.reserve(tasks.size());
  while (!ready.empty()) {
    order.push_back(ready.top());
    ready.pop();
    for (const TaskId next : then[order.back()]) {
      if (--missing[next] == 0) ready.push(next);
    }
  }
  return order;
}

/// What each task has to follow: what it depends on, and for a cooperative task also the one before it in the
/// order, where they might not all be resident together.
class Before {
 public:
  Before(std::span<const Task> tasks, std::span<const TaskId> order, const StreamChoices& choices,
         const Target& target)
      : tasks_(tasks) {
    std::vector<Residency> cooperative;
    for (const TaskId t : order)
      if (tasks[t].cooperative) cooperative.push_back(tasks[t].residency);
    if (cooperative.empty() || !choices.order_cooperative || fit_together(cooperative, target)) return;
    follows_.resize(tasks.size(), no_task);
    TaskId last = no_task;
    for (const TaskId t : order)
      if (tasks[t].cooperative) follows_[t] = std::exchange(last, t);
  }

  template <class F>
  void each(TaskId task, F&& f) const {
    for (const TaskId before : tasks_[task].after) f(before);
    if (!follows_.empty() && follows_[task] != no_task) f(follows_[task]);
  }

 private:
  std::span<const Task> tasks_;
  std::vector<TaskId> follows_;  // for a cooperative task, the one before it; empty: nobody follows one
};

/// Gives each task the stream on which the model starts it first.
class Placer {
 public:
  Placer(std::span<const Task> tasks, const StreamChoices& choices, const Before& before)
      : tasks_(tasks),
        choices_(choices),
        before_(before),
        free_(static_cast<std::size_t>(choices.max_streams), 0),
        share_(free_.size(), 0) {}

  void run(StreamPlan& plan) {
    plan.stream.resize(tasks_.size());
    plan.spans.resize(tasks_.size());
    for (const TaskId task : plan.order) {
      const bool is_open = choices_.stream.empty() || choices_.stream[task] == open_stream;
      const auto [stream, at] = is_open ? best(plan, task) : on(plan, task, choices_.stream[task]);
      plan.spans[task] = {at, at + tasks_[task].seconds};
      free_[stream] = plan.spans[task].end;
      share_[stream] = tasks_[task].share;
      plan.stream[task] = stream;
      plan.streams = std::max(plan.streams, stream + 1);
      plan.seconds = std::max(plan.seconds, plan.spans[task].end);
    }
  }

 private:
  /// A stream, and when a task starts on it.
  struct Place {
    StreamId stream = 0;
    double start = 0;
  };

  Place on(const StreamPlan& plan, TaskId task, StreamId stream) const {
    return {stream, start(plan, task, stream)};
  }

  double start(const StreamPlan& plan, TaskId task, StreamId stream) const {
    double at = free_[stream];
    before_.each(task, [&](TaskId b) {
      at = std::max(at, plan.spans[b].end + (plan.stream[b] == stream ? 0 : wait_seconds));
    });
    // A task runs beside others only where the device has room for all of them: sharing makes none faster.
    for (;;) {
      double taken = tasks_[task].share, next = std::numeric_limits<double>::infinity();
      for (std::size_t s = 0; s < static_cast<std::size_t>(plan.streams); ++s) {
        if (s == stream || free_[s] <= at) continue;
        taken += share_[s];
        next = std::min(next, free_[s]);
      }
      if (taken <= 1 + 1e-9 || std::isinf(next)) return at;
      at = next;
    }
  }

  /// The stream of what it waits for last is preferred: another has to be worth a wait.
  Place best(const StreamPlan& plan, TaskId task) const {
    StreamId home = 0;
    double latest = -1;
    before_.each(task, [&](TaskId b) {
      if (plan.spans[b].end > latest) home = plan.stream[b];
      latest = std::max(latest, plan.spans[b].end);
    });
    Place found = on(plan, task, home);
    double first = found.start;
    if (first <= latest) return found;  // no stream starts it before that

    const int used = std::min(plan.streams + 1, choices_.max_streams);  // unused ones are alike
    for (StreamId s = 0; s < used; ++s) {
      if (s == home) continue;
      const Place other = on(plan, task, s);
      if (other.start + wait_seconds < first) found = other;
      first = std::min(first, other.start + wait_seconds);
    }
    return found;
  }

  std::span<const Task> tasks_;
  const StreamChoices& choices_;
  const Before& before_;
  std::vector<double> free_, share_;  // per stream: when its last task ends, and what that fills
};

/// Adds the waits that the streams alone do not give. The latest task that one has to follow comes first:
/// what that has waited for needs no wait of its own.
void add_waits(StreamPlan& plan, const Before& before) {
  if (plan.streams == 1) return;
  std::vector<std::uint32_t> position(plan.order.size());
  for (std::uint32_t i = 0; i < plan.order.size(); ++i) position[plan.order[i]] = i;
  Clocks clocks(plan.order.size(), static_cast<std::size_t>(plan.streams));
  const auto wait = [&](TaskId task, TaskId on) {
    if (clocks.before(on, plan.stream[on], task)) return false;
    clocks.wait(task, on, plan.stream[on]);
    return true;
  };
  std::vector<TaskId> latest_first;
  for (const TaskId task : plan.order) {
    clocks.append(task, plan.stream[task]);
    latest_first.clear();
    before.each(task, [&](TaskId on) { latest_first.push_back(on); });
    std::sort(latest_first.begin(), latest_first.end(),
              [&](TaskId a, TaskId b) { return position[a] > position[b]; });
    for (const TaskId on : latest_first) {
      if (wait(task, on)) plan.waits.push_back({task, on});
    }
  }
  // The end is one more task of stream 0.
  std::vector<TaskId> ends;
  for (std::size_t s = 1; s < static_cast<std::size_t>(plan.streams); ++s) {
    if (clocks.last(s) != no_task) ends.push_back(clocks.last(s));
  }
  std::sort(ends.begin(), ends.end(), [&](TaskId a, TaskId b) { return position[a] > position[b]; });
  const TaskId last = clocks.last(0);
  for (const TaskId end : ends) {
    const auto sees = [&](TaskId other) {
      return other != no_task && other != end && clocks.before(end, plan.stream[end], other);
    };
    if (!sees(last) && std::none_of(plan.final_waits.begin(), plan.final_waits.end(), sees))
      plan.final_waits.push_back(end);
  }
}

void check(std::span<const Task> tasks, const StreamChoices& choices) {
  if (choices.max_streams < 1 || choices.max_streams > most_streams) {
    bad_streams(fmt::format("max_streams is {}, 1 to {} are allowed", choices.max_streams, most_streams));
  }
  for (TaskId t = 0; t < tasks.size(); ++t) {
    const Task& task = tasks[t];
    if (!(task.share > 0) || task.share > 1 || !(task.seconds >= 0))
      bad_streams(fmt::format("task {} has no cost", t));
    for (const TaskId b : task.after) {
      if (b >= t) bad_streams(fmt::format("task {} depends on {}, which is not before it", t, b));
    }
  }
  if (!choices.stream.empty() && choices.stream.size() != tasks.size())
    bad_streams("a stream for each task, or no_task");
  for (const StreamId s : choices.stream) {
    if (s != open_stream && s >= choices.max_streams)
      bad_streams(fmt::format("stream {} of {}", s, choices.max_streams));
  }
  if (choices.order.empty()) return;
  std::vector<bool> done(tasks.size());
  for (const TaskId t : choices.order) {
    if (t >= tasks.size() || done[t]) bad_streams("the order is no permutation of the tasks");
    for (const TaskId b : tasks[t].after) {
      if (!done[b]) bad_streams(fmt::format("the order has task {} before {}, on which it depends", t, b));
    }
    done[t] = true;
  }
  if (choices.order.size() != tasks.size()) bad_streams("the order is no permutation of the tasks");
}

StreamPlan plan_in(std::vector<TaskId> order, std::span<const Task> tasks, const StreamChoices& choices,
                   const Target& target) {
  StreamPlan plan;
  plan.order = std::move(order);
  const Before before(tasks, plan.order, choices, target);
  Placer(tasks, choices, before).run(plan);
  add_waits(plan, before);
  return plan;
}

}  // namespace

std::string StreamChoices::to_string() const {
  std::string text = fmt::format("max_streams = {}", max_streams);
  if (!order.empty()) text += fmt::format(", order = [{}]", fmt::join(order, " "));
  if (!stream.empty()) text += fmt::format(", stream = [{}]", fmt::join(stream, " "));
  if (!order_cooperative) text += ", cooperative tasks in no order";
  return text;
}

StreamPlan plan_streams(std::span<const Task> tasks, const StreamChoices& choices, const Target& target) {
  check(tasks, choices);
  if (!choices.order.empty()) return plan_in(choices.order, tasks, choices, target);
  StreamPlan plan = plan_in(plan_order(tasks.size()), tasks, choices, target);
  const bool is_told =
      !choices.stream.empty() && std::ranges::find(choices.stream, open_stream) == choices.stream.end();
  if (choices.max_streams == 1 || is_told) return plan;
  const double enough = plan.seconds * (1 - least_gain);
  const std::vector<double> rank = ranks_of(tasks);
  if (std::ranges::any_of(rank, [&](double path) { return path >= enough; })) return plan;
  StreamPlan other = plan_in(critical_order(tasks, rank), tasks, choices, target);
  return other.seconds < enough ? other : plan;
}

HappensBefore::HappensBefore(const StreamPlan& plan)
    : streams_(static_cast<std::size_t>(plan.streams)), stream_(plan.stream) {
  Clocks clocks(plan.order.size(), streams_);
  std::size_t next = 0;
  for (const TaskId task : plan.order) {
    clocks.append(task, plan.stream[task]);
    for (; next < plan.waits.size() && plan.waits[next].task == task; ++next) {
      clocks.wait(task, plan.waits[next].on, plan.stream[plan.waits[next].on]);
    }
  }
  position_ = std::move(clocks).positions();
  clocks_ = std::move(clocks).clocks();
}

void verify(std::span<const Task> tasks, const StreamPlan& plan, const Target& target) {
  const std::size_t count = tasks.size();
  if (plan.order.size() != count || plan.stream.size() != count) bad_streams("not a position for each task");
  std::vector<bool> dispatched(count);
  std::size_t next = 0;
  for (const TaskId task : plan.order) {
    if (task >= count || dispatched[task]) bad_streams("the order is no permutation of the tasks");
    if (plan.stream[task] >= plan.streams)
      bad_streams(fmt::format("task {} is on a stream that is not there", task));
    for (; next < plan.waits.size() && plan.waits[next].task == task; ++next) {
      const TaskId on = plan.waits[next].on;
      if (on >= count || !dispatched[on])
        bad_streams(fmt::format("task {} waits for what comes later", task));
    }
    dispatched[task] = true;
  }
  if (next != plan.waits.size()) bad_streams("a wait stands out of order");
  const HappensBefore before(plan);
  for (TaskId task = 0; task < count; ++task) {
    for (const TaskId b : tasks[task].after) {
      if (!before(b, task))
        bad_streams(fmt::format("task {} may start before {}, on which it depends", task, b));
    }
  }
  for (TaskId task = 0; task < count; ++task) {
    if (!tasks[task].cooperative) continue;
    std::vector<Residency> beside = {tasks[task].residency};
    TaskId other_task = no_task;
    for (TaskId other = 0; other < count; ++other) {
      if (other == task || !tasks[other].cooperative || before(task, other) || before(other, task)) continue;
      beside.push_back(tasks[other].residency);
      other_task = other;
    }
    if (fit_together(beside, target)) continue;
    if (other_task == no_task)
      bad_streams(fmt::format("task {} is cooperative, and not all of its blocks fit {}", task, target.name));
    bad_streams(fmt::format(
        "tasks {} and {} are cooperative, may run at one time, and {} has no room for all blocks of both",
        std::min(task, other_task), std::max(task, other_task), target.name));
  }
  std::vector<bool> joined(static_cast<std::size_t>(plan.streams));
  std::vector<TaskId> last(static_cast<std::size_t>(plan.streams), no_task);
  for (const TaskId task : plan.order) last[plan.stream[task]] = task;
  for (std::size_t s = 1; s < last.size(); ++s) {
    if (last[s] == no_task) continue;
    const auto sees = [&](TaskId end) { return end == last[s] || before(last[s], end); };
    const bool seen = last[0] != no_task && before(last[s], last[0]);
    if (!seen && std::none_of(plan.final_waits.begin(), plan.final_waits.end(), sees)) {
      bad_streams(fmt::format("the run may end before stream {} has", s));
    }
  }
}

std::string print(const StreamPlan& plan, std::span<const std::string> names) {
  std::string text;
  std::size_t next = 0;
  for (const TaskId task : plan.order) {
    text += fmt::format("stream {} {} {}", plan.stream[task], task, names[task]);
    for (; next < plan.waits.size() && plan.waits[next].task == task; ++next) {
      text += fmt::format("{} {}", text.ends_with(names[task]) ? " waits for" : ",", plan.waits[next].on);
    }
    text += '\n';
  }
  if (!plan.final_waits.empty()) text += fmt::format("ends with {}\n", fmt::join(plan.final_waits, ", "));
  return text;
}

}  // namespace fuse::schedule
