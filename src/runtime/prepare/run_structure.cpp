// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/run_structure.hpp"

#include <algorithm>
#include <utility>

#include "plan/step_dependencies.hpp"
#include "runtime/prepare/commands_of.hpp"
#include "runtime/prepare/live_ranges.hpp"

namespace fuse::runtime {
namespace {

using schedule::TaskId;
using schedule::ValueId;

/// Whether steps are dispatched and wait alike, whatever they cost.
bool same_order(const schedule::StreamPlan& a, const schedule::StreamPlan& b) {
  return a.streams == b.streams && a.order == b.order && a.stream == b.stream && a.waits == b.waits &&
         a.final_waits == b.final_waits;
}

}  // namespace

RunStructure::RunStructure(const schedule::Plan& plan, std::span<const ReadyStep> steps,
                           std::span<const Scratch> scratch, const ValueLocations& locations) {
  schedule::StepDependencies dependencies(plan, [&](ValueId a, ValueId b) {
    const bool meet = locations.meet(a, b);
    met_.push_back({a, b, meet});
    return meet;
  });
  for (const ReadyStep& step : steps) {
    numbers_.push_back(step.number);
    arguments_ += step.arguments.count;
    tasks_.push_back({.after = dependencies.add(plan.steps[step.number])});
  }
  for (const Scratch& each : scratch) with_scratch_.push_back(each.task);
  const std::size_t temporaries = locations.memory_bytes().size();
  const auto listed = [&](auto&& wanted, bool with_scratch) {
    return Lists<TaskId>::grouped(temporaries + scratch.size(), [&](auto&& add) {
      for (TaskId task = 0; task < steps.size(); ++task) {
        const schedule::Step& step = plan.steps[steps[task].number];
        for (const std::vector<ValueId>* ids : {&step.reads, &step.writes}) {
          for (const ValueId id : *ids) {
            const std::optional<std::size_t> memory = locations.memory_of(id);
            if (memory && wanted(id, ids == &step.writes)) add(*memory, task);
          }
        }
      }
      for (std::size_t i = 0; with_scratch && i < scratch.size(); ++i) add(temporaries + i, scratch[i].task);
    });
  };
  users_ = listed([](ValueId, bool) { return true; }, true);
  makers_ = listed([&](ValueId id, bool writes) { return writes && locations.is_part(id); }, false);
}

bool RunStructure::fits(std::span<const ReadyStep> steps, std::span<const Scratch> scratch,
                        const ValueLocations& locations) const {
  return std::equal(steps.begin(), steps.end(), numbers_.begin(), numbers_.end(),
                    [](const ReadyStep& step, std::uint32_t number) { return step.number == number; }) &&
         std::equal(scratch.begin(), scratch.end(), with_scratch_.begin(), with_scratch_.end(),
                    [](const Scratch& each, TaskId task) { return each.task == task; }) &&
         std::all_of(met_.begin(), met_.end(),
                     [&](const Met& each) { return locations.meet(each.a, each.b) == each.meet; });
}

bool RunStructure::ran_on(const schedule::StreamPlan& streams) const {
  return memory_ && same_order(streams, streams_);
}

MemoryPlan RunStructure::plan_workspace(const schedule::StreamPlan& streams, std::span<const Scratch> scratch,
                                        const ValueLocations& locations) {
  if (!ran_on(streams)) {
    const LiveRanges live(streams);
    std::vector<LiveRange> ranges;
    ranges.reserve(users_.size());
    for (std::size_t i = 0; i < users_.size(); ++i)
      ranges.push_back(makers_[i].empty() ? live.of(0, users_[i]) : live.of(0, users_[i], makers_[i]));
    memory_.emplace(std::move(ranges));
    commands_ = commands_of(streams);
    streams_ = streams;
  }
  const std::vector<std::int64_t>& bytes = locations.memory_bytes();
  for (std::size_t i = 0; i < users_.size(); ++i) {
    const std::int64_t needed = i < bytes.size() ? bytes[i] : scratch[i - bytes.size()].bytes;
    memory_->resize(i, users_[i].empty() ? 0 : needed);
  }
  return memory_->plan();
}

}  // namespace fuse::runtime
