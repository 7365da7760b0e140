// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/recorded_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>
#include <utility>

#include "base/access.hpp"
#include "plan/decision_line.hpp"
#include "plan/step_dependencies.hpp"

namespace fuse::runtime {
namespace {

using schedule::StreamId;
using schedule::TaskId;

constexpr TaskId without_work = ~TaskId{0};

/// For each step of the plan, its task.
std::vector<TaskId> tasks_of_steps(const Prepared::Impl& made) {
  std::vector<TaskId> tasks(made.build->program->plan.steps.size(), without_work);
  for (TaskId task = 0; task < made.steps.size(); ++task) tasks[made.steps[task].number] = task;
  return tasks;
}

/// Parts of one memory may meet for these dims alone.
void check_recorded_order(const Prepared::Impl& made, const std::vector<TaskId>& order,
                          const std::vector<schedule::Task>& tasks) {
  std::vector<bool> done(tasks.size());
  for (const TaskId task : order) {
    for (const TaskId before : tasks[task].after) {
      if (done[before]) continue;
      const Program& program = *made.build->program;
      schedule::RunMisfit wrong =
          schedule::misfit_of_order(program.plan, made.steps[task].number, made.steps[before].number);
      throw Error({.code = ErrorCode::invalid_argument,
                   .message = fmt::format("{}: run: {} for these dims",
                                          schedule::line_of_decisions(program.run.line), wrong.what),
                   .hint = std::move(wrong.hint)});
    }
    done[task] = true;
  }
}

/// All steps of a plan, those with work in the order of their positions. A step without work has position 0.
std::vector<std::uint32_t> order_of_steps(const schedule::Plan& plan,
                                          const std::vector<std::uint32_t>& positions) {
  const std::vector<std::vector<std::uint32_t>> after = schedule::certain_dependencies(plan);
  std::vector<std::vector<std::uint32_t>> then(after.size());
  std::vector<std::size_t> missing(after.size());
  using Ready = std::pair<std::uint32_t, std::uint32_t>;  // position and step
  std::priority_queue<Ready, std::vector<Ready>, std::greater<>> ready;
  for (std::uint32_t step = 0; step < after.size(); ++step) {
    missing[step] = after[step].size();
    for (const std::uint32_t before : after[step]) then[before].push_back(step);
    if (missing[step] == 0) ready.emplace(positions[step], step);
  }
  std::vector<std::uint32_t> order;
  while (!ready.empty()) {
    order.push_back(ready.top().second);
    ready.pop();
    for (const std::uint32_t next : then[order.back()]) {
      if (--missing[next] == 0) ready.emplace(positions[next], next);
    }
  }
  return order;
}

}  // namespace

schedule::StreamChoices stream_choices_of(const Prepared::Impl& made,
                                          const std::vector<schedule::Task>& tasks) {
  const Program& program = *made.build->program;
  schedule::StreamChoices choices = program.streams;
  if (!made.as_planned) {
    choices.stream.clear();
    choices.order.clear();
    return choices;
  }
  const schedule::RunDecision& run = program.run;
  if (!run.order.empty()) {
    const std::vector<TaskId> task_of = tasks_of_steps(made);
    choices.order.clear();
    for (const std::uint32_t step : run.order) {
      if (task_of[step] != without_work) choices.order.push_back(task_of[step]);
    }
    check_recorded_order(made, choices.order, tasks);
  }
  if (!run.streams.empty()) {
    choices.stream.clear();
    for (const ReadyStep& step : made.steps) {
      const std::uint32_t told = run.streams[step.number];
      const StreamId stream =
          told == schedule::open_step ? schedule::open_stream : static_cast<StreamId>(told);
      choices.stream.push_back(stream);
      // The bound is for the cost model.
      if (stream != schedule::open_stream) choices.max_streams = std::max(choices.max_streams, stream + 1);
    }
  }
  return choices;
}

schedule::RunDecision run_decision_of(const Workspace& workspace) {
  const Prepared::Impl& p = *impl_of(workspace)->prepared;
  schedule::RunDecision result{.mode = workspace.mode()};
  if (!p.as_planned) return result;
  const schedule::Plan& plan = p.build->program->plan;
  std::vector<std::uint32_t> positions(plan.steps.size());
  result.streams.resize(plan.steps.size());
  for (std::uint32_t position = 0; position < p.streams.order.size(); ++position) {
    const TaskId task = p.streams.order[position];
    const std::uint32_t step = p.steps[task].number;
    positions[step] = position + 1;
    result.streams[step] = p.streams.stream[task];
  }
  result.order = order_of_steps(plan, positions);
  return result;
}

}  // namespace fuse::runtime
