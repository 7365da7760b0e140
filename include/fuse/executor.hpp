// Executor: threads of the application's own, for a device to run its work on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/export.hpp>

namespace fuse {
inline namespace v0 {

/// Threads that the application already has, such as those of its task scheduler. Each device that has it
/// calls it from any thread, one call at a time.
class FUSE_COMPILER_API Executor {
 public:
  virtual ~Executor() = default;
  /// How many tasks it runs at once, at least 1. A device asks once, when it is made.
  virtual int threads() const = 0;
  /// Calls task(context, i) for every i from 0 to tasks - 1, in any order and on any threads, and returns
  /// when all calls have returned. What it throws becomes the failure of the run that asked.
  virtual void run(int tasks, void (*task)(void* context, int index), void* context) = 0;
};

}  // namespace v0
}  // namespace fuse
