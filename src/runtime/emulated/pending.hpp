// Cooperative launches that did not run yet: on a GPU they run beside those of other queues, until something
// is ordered after them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <fuse/error.hpp>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "runtime/emulated/launch.hpp"

namespace fuse::runtime::emulated {

/// The pending launches of a device. Thread safe; a Slot belongs to one thread at a time.
class Pending {
 public:
  /// Runs launches beside each other.
  using Run = std::function<void(std::span<Launch* const>)>;
  /// What became of a launch.
  using Finish = std::function<Status(Launch&)>;

  /// A queue's launch, and the failure that its last one left for the queue's next operation.
  class Slot {
    friend class Pending;
    std::unique_ptr<Launch> launch_;
    Status failure_;
    std::atomic<bool> used_ = false;  // only its own thread sets it: idle queues need no lock
  };

  Pending(Run run, Finish finish) : run_(std::move(run)), finish_(std::move(finish)) {}

  /// The slot was settled.
  void add(Slot& slot, std::unique_ptr<Launch> launch);
  /// Settles: all that was added to the slot has run, and with it what waits in the other slots. Returns its
  /// failure, once.
  Status settle(Slot& slot) noexcept;
  /// As settle, for another queue, which waits for this one: the failure stays for the slot's own queue too.
  /// Any thread may call it.
  Status await(Slot& slot) noexcept;
  /// Settles all slots; failures stay for their queues.
  void settle_all() noexcept;
  /// Settles all slots and lets go of the device: queues may outlive it.
  void close() noexcept;

 private:
  void run_all() noexcept;

  std::mutex mutex_;
  Run run_;
  Finish finish_;
  std::vector<Slot*> waiting_;  // in the order of their launches
};

}  // namespace fuse::runtime::emulated
