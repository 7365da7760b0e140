// A workspace's run as one graph of work: one node per command, after the nodes that the command's stream and
// its waits put it after. So what has ended before a step starts is the same as on streams, and the memory
// plan and the order of cooperative kernels hold here too.
//
// Before:  stream 0: 0 1 3   stream 1: 2   2 waits for 0, 3 for 2
// After:   nodes 0, 1 after 0, 2 after 0, 3 after 1 and 2; one launch
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <memory>
#include <span>
#include <vector>

namespace fuse::runtime {

struct Argument;
class Queue;
class DeviceGraph;

class Replay {
 public:
  /// Null on a device that has no graphs. `arguments` are those of all steps, complete for what lies in the
  /// workspace. Throws driver, out_of_memory.
  static std::unique_ptr<Replay> make(const Prepared::Impl&, std::span<const Argument> arguments);
  ~Replay();

  /// Reports that the buffer of the slot (after the slots: the packed memory) is elsewhere now.
  void moved(std::size_t slot) noexcept;
  /// Brings the nodes of what has moved up to date, and launches. A node whose update failed is brought up to
  /// date by the next run. Where the device refuses an exchange the graph is made anew, once; `unsupported`
  /// where that does not help, or the device refuses again: nothing was enqueued then.
  Status run(const Prepared::Impl&, std::span<const Argument> arguments, Queue&) noexcept;
  /// The refusal for which the graph was made anew; ok where there was none.
  const Status& refusal() const noexcept { return refusal_; }

 private:
  explicit Replay(std::unique_ptr<DeviceGraph> graph);
  void build(const Prepared::Impl&, std::span<const Argument> arguments);
  Status update(const Prepared::Impl&, std::span<const Argument> arguments) noexcept;
  Status make_anew(const Prepared::Impl&, std::span<const Argument> arguments) noexcept;

  std::unique_ptr<DeviceGraph> graph_;
  std::unique_ptr<DeviceGraph> refused_;  ///< the first graph, a launch of it may be in flight
  Status refusal_;
  /// For each slot, then for the packed memory, the nodes with addresses in it.
  std::vector<std::vector<std::uint32_t>> nodes_of_;
  std::vector<char> stale_;  ///< for each node, whether it is out of date
  bool any_stale_ = false;
};

}  // namespace fuse::runtime
