// Streams: which stream runs each step of a plan, in which order steps are dispatched, and which waits keep
// the dependencies (Astra, section 3.3). It has numbers, not expressions: dims are bound.
//
// Before:  0 norm   1 q (after 0)   2 k (after 0)   3 scores (after 1, 2)       each fills half the device
// After:   stream 0: 0 1 3   stream 1: 2   2 waits for 0, 3 for 2
//
// Why a plan on streams cannot deadlock: docs/streams.md. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "target/residency.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

using TaskId = std::uint32_t;
using StreamId = std::uint8_t;
inline constexpr int most_streams = 16;
/// In StreamChoices::stream, a task whose stream the cost model decides.
inline constexpr StreamId open_stream = 255;

/// A step as the planner of streams sees it.
struct Task {
  std::vector<TaskId> after{};  ///< tasks that must have ended before it starts; all smaller
  double seconds = 0;           ///< its time alone on the device, by the cost model
  double share = 1;             ///< share of the device that it fills, above 0 and at most 1
  bool cooperative = false;     ///< its blocks wait for each other while it runs
  Residency residency{};        ///< what a cooperative task occupies
};

/// The open decisions. The cost model decides what is left empty.
struct StreamChoices {
  int max_streams = 4;
  std::vector<TaskId> order{};     ///< the order in which tasks are dispatched
  std::vector<StreamId> stream{};  ///< stream per task; of some tasks it may be open_stream
  /// False plants a fault, for tests: cooperative tasks run concurrently with each other, and with those of
  /// other runs, whether they fit or not.
  bool order_cooperative = true;
  bool operator==(const StreamChoices&) const = default;
  std::string to_string() const;
};

/// A task of another stream that must have ended before a task starts.
struct StreamWait {
  TaskId task = 0;
  TaskId on = 0;
  bool operator==(const StreamWait&) const = default;
};

/// Seconds from the start of a run.
struct Span {
  double start = 0, end = 0;
};

/// Stream 0 is the caller's. The others start after what it had when the run began.
struct StreamPlan {
  int streams = 1;
  std::vector<TaskId> order{};        ///< a permutation; within a stream, the order of execution
  std::vector<StreamId> stream{};     ///< stream per task
  std::vector<StreamWait> waits{};    ///< by position of `task` in the order; none follows from the others
  std::vector<TaskId> final_waits{};  ///< the last tasks, which stream 0 waits for at the end
  std::vector<Span> spans{};          ///< span per task, by the cost model
  double seconds = 0;                 ///< time from the first start to the last end, by the cost model
};

/// Which tasks have ended before which others start, whatever the device does.
class HappensBefore {
 public:
  explicit HappensBefore(const StreamPlan&);
  bool operator()(TaskId a, TaskId b) const { return position_[a] < clock(b)[stream_[a]]; }
  /// For each stream, how many of its tasks have ended before the task starts.
  std::span<const std::uint32_t> clock(TaskId task) const { return {&clocks_[task * streams_], streams_}; }
  std::uint32_t position(TaskId task) const { return position_[task]; }  ///< in its stream
  std::size_t streams() const { return streams_; }

 private:
  std::size_t streams_;
  std::vector<StreamId> stream_;
  std::vector<std::uint32_t> position_, clocks_;
};

/// The plan is pure and deterministic. Cooperative tasks that might not be resident together are put one
/// after the other. Throws an internal Error for choices that do not fit the tasks.
StreamPlan plan_streams(std::span<const Task>, const StreamChoices&, const Target&);

/// Throws an internal Error unless the order is a permutation in which waits are for earlier tasks, streams
/// and waits keep every dependency, and cooperative tasks are resident with those that nothing orders.
void verify(std::span<const Task>, const StreamPlan&, const Target&);

std::string print(const StreamPlan&, std::span<const std::string> names);

}  // namespace fuse::schedule
