// RunStructure: what the runs of a plan have in common for many dims. Which steps have work, which waits for
// which, and when each memory is in use seldom depend on the numbers, and take longer to find than these. So
// what was found for the last dims serves the next, where everything that it was found of is the same again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/lists.hpp"
#include "plan/stream_plan.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/execute/prepared_shapes.hpp"
#include "runtime/prepare/memory_plan.hpp"
#include "runtime/prepare/value_locations.hpp"

namespace fuse::runtime {

/// Memory of the workspace that one task alone uses.
struct Scratch {
  schedule::TaskId task = 0;
  std::int64_t bytes = 0;
};

class RunStructure final : public Reusable {
 public:
  /// `steps`: those that have work, with their numbers in the plan.
  RunStructure(const schedule::Plan& plan, std::span<const ReadyStep> steps, std::span<const Scratch> scratch,
               const ValueLocations& locations);

  /// Whether it would be the same for these.
  bool fits(std::span<const ReadyStep> steps, std::span<const Scratch> scratch,
            const ValueLocations& locations) const;

  /// The tasks of the steps. What they wait for stays; what they cost is for the caller to fill in.
  std::vector<schedule::Task>& tasks() { return tasks_; }
  /// Where each memory of the workspace lies, then each scratch, on these streams.
  MemoryPlan plan_workspace(const schedule::StreamPlan& streams, std::span<const Scratch> scratch,
                            const ValueLocations& locations);
  /// How many arguments the steps have.
  std::size_t arguments() const { return arguments_; }
  /// Whether the last plan's steps were dispatched and waited like these.
  bool ran_on(const schedule::StreamPlan& streams) const;
  /// What a run enqueues, on the streams of the last plan.
  const Commands& commands() const { return commands_; }
  /// Whether the last plan's memories may lie at other offsets.
  bool holds(std::span<const std::int64_t> offsets) const { return memory_->holds(offsets); }
  /// Where the last of them ends then.
  std::int64_t end(std::span<const std::int64_t> offsets) const { return memory_->end(offsets); }

 private:
  /// An answer that dependencies were found by: whether two parts of one memory have a byte in common.
  struct Met {
    schedule::ValueId a = 0, b = 0;
    bool meet = false;
  };

  std::vector<std::uint32_t> numbers_;  // of the steps
  std::size_t arguments_ = 0;
  std::vector<schedule::TaskId> with_scratch_;
  std::vector<Met> met_;
  std::vector<schedule::Task> tasks_;
  // For each memory, the tasks that use it, and those that make its parts; without these its first user does.
  Lists<schedule::TaskId> users_, makers_;
  schedule::StreamPlan streams_;  // that what follows is for
  std::optional<MemoryPlanner> memory_;
  Commands commands_;
};

}  // namespace fuse::runtime
