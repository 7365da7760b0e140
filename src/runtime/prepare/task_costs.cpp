// SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/task_costs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

namespace fuse::runtime {

using schedule::Step;
using schedule::Task;
using schedule::TaskId;
using schedule::ValueId;

schedule::Residency residency_of(const Build& build, const schedule::KernelStep& work, std::int64_t blocks) {
  const codegen::KernelInfo& kernel = build.program->kernels[work.kernel];
  return {.blocks = blocks,
          .threads = kernel.block_threads,
          .registers = build.functions[work.kernel]->registers,
          .shared_bytes = kernel.shared_bytes,
          .blocks_per_sm = kernel.blocks_per_sm,
          .counted = build.functions[work.kernel]->blocks_per_sm};
}

void TaskCosts::put(const Step& step, const ReadyStep& ready, Task& task) const {
  std::int64_t bytes = 0;
  const auto* const kernel = std::get_if<schedule::KernelStep>(&step.work);
  if (kernel && !kernel->touched.empty()) {
    for (std::size_t i = 0; i < kernel->buffers.size(); ++i)
      bytes += std::min(locations_.bytes(kernel->buffers[i]), binding_.value(kernel->touched[i]));
  } else {
    for (const std::vector<ValueId>* values : {&step.reads, &step.writes}) {
      for (const ValueId id : *values) bytes += locations_.bytes(id);
    }
  }
  task.residency = {};
  const schedule::StepCost cost = cost_of(step, ready, bytes, task.residency);
  task.seconds = cost.seconds;
  task.share = cost.share;
  task.cooperative = step.cooperative;
  if (task.cooperative) check_resident(step, task.residency);
}

void TaskCosts::copy(const Task& from, Task& to) {
  to.seconds = from.seconds;
  to.share = from.share;
  to.cooperative = from.cooperative;
  to.residency = from.residency;
}

void TaskCosts::check_resident(const Step& step, const schedule::Residency& residency) const {
  if (schedule::fit_together(std::span(&residency, 1), target_)) return;
  const StepOrigin& made_of = build_.program->origins[step.origin];
  throw Error(
      {.code = ErrorCode::out_of_residency,
       .message = fmt::format("kernel '{}' has {} blocks that wait for each other, and {} holds {} of "
                              "them at a time",
                              step.name, residency.blocks, target_.name,
                              std::int64_t{target_.sms} * schedule::blocks_per_sm(residency, target_)),
       .op = made_of.op,
       .shapes = {made_of.type},
       .location = made_of.location,
       .hint = "let fewer blocks do the work, each more of it, or give the kernel parts"});
}

schedule::StepCost TaskCosts::cost_of(const Step& step, const ReadyStep& ready, std::int64_t bytes,
                                      schedule::Residency& residency) const {
  if (ready.kind == ReadyStep::Kind::kernel) {
    const auto& work = std::get<schedule::KernelStep>(step.work);
    residency = residency_of(build_, work, ready.grid.x);
    return schedule::kernel_cost(bytes, residency, target_);
  }
  if (ready.kind == ReadyStep::Kind::gemm) {
    const auto& work = std::get<schedule::GemmStep>(step.work);
    schedule::StepCost cost = schedule::gemm_cost(bytes, binding_.value(work.batch), binding_.value(work.m),
                                                  binding_.value(work.n), binding_.value(work.k), target_);
    cost.seconds += static_cast<double>(ready.calls - 1) * target_.launch_seconds;
    return cost;
  }
  return schedule::transfer_cost(bytes, target_);
}

schedule::Alternatives cooperative_of(const std::vector<Task>& tasks, const schedule::StreamPlan& streams) {
  std::vector<TaskId> cooperative;
  for (TaskId task = 0; task < tasks.size(); ++task) {
    if (tasks[task].cooperative) cooperative.push_back(task);
  }
  if (cooperative.empty()) return {};
  const schedule::HappensBefore before(streams);
  const auto ordered = [&](TaskId a) {
    return std::all_of(cooperative.begin(), cooperative.end(),
                       [&](TaskId b) { return a == b || before(a, b) || before(b, a); });
  };
  const bool in_order = std::all_of(cooperative.begin(), cooperative.end(), ordered);
  schedule::Alternatives alternatives;
  for (const TaskId task : cooperative) {
    if (in_order || alternatives.empty()) alternatives.emplace_back();
    alternatives.back().push_back(tasks[task].residency);
  }
  return alternatives;
}

}  // namespace fuse::runtime
