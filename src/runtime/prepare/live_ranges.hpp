// When the values of a plan on streams need memory: from the step that makes them until every step that uses
// them has ended, whatever else runs meanwhile. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "plan/stream_plan.hpp"
#include "runtime/prepare/memory_plan.hpp"

namespace fuse::runtime {

/// The live ranges on the streams of one plan. Steps are numbered stream by stream.
class LiveRanges {
 public:
  explicit LiveRanges(const schedule::StreamPlan&);
  /// `users`: the tasks that use the value, in any order; the first dispatched makes it and precedes all
  /// others. Without users it needs no memory.
  LiveRange of(std::int64_t bytes, std::span<const schedule::TaskId> users) const;
  /// The same where several of the users make it, in no order: each of the others comes after those it needs.
  LiveRange of(std::int64_t bytes, std::span<const schedule::TaskId> users,
               std::span<const schedule::TaskId> makers) const;

 private:
  std::uint32_t number(schedule::TaskId task) const {
    return first_of_stream_[plan_.stream[task]] + before_.position(task);
  }

  const schedule::StreamPlan& plan_;
  const schedule::HappensBefore before_;
  std::vector<std::vector<schedule::TaskId>> on_stream_;
  std::vector<std::uint32_t> first_of_stream_, dispatched_;
};

}  // namespace fuse::runtime
