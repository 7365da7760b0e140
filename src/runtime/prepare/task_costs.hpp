// What the steps of a run cost as tasks, for schedule::plan_streams, once the dims are numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "runtime/execute/binding.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/value_locations.hpp"
#include "target/step_cost.hpp"

namespace fuse::runtime {

/// The share of the device that a kernel takes when launched with so many blocks.
schedule::Residency residency_of(const Build& build, const schedule::KernelStep& work, std::int64_t blocks);

class TaskCosts {
 public:
  /// Refers to its arguments.
  TaskCosts(const Target& target, const Build& build, const Binding& binding, const ValueLocations& locations)
      : target_(target), build_(build), binding_(binding), locations_(locations) {}

  /// All of the task but what it waits for. Throws out_of_residency where blocks that wait for each other
  /// cannot all have slots at one time.
  void put(const schedule::Step& step, const ReadyStep& ready, schedule::Task& task) const;
  /// The same of a task that does the same.
  static void copy(const schedule::Task& from, schedule::Task& to);

 private:
  void check_resident(const schedule::Step& step, const schedule::Residency& residency) const;
  schedule::StepCost cost_of(const schedule::Step& step, const ReadyStep& ready, std::int64_t bytes,
                             schedule::Residency& residency) const;

  const Target& target_;
  const Build& build_;
  const Binding& binding_;
  const ValueLocations& locations_;
};

/// What a run asks of the device's block slots for kernels whose blocks wait for each other in a loop: slots
/// for all of them at a time, unless the stream plan puts these kernels one after the other.
schedule::Alternatives cooperative_of(const std::vector<schedule::Task>& tasks,
                                      const schedule::StreamPlan& streams);

}  // namespace fuse::runtime
