// Ranges for a profiler's time line (NVTX): a run, and the enqueueing of each step. They are there only where
// a profiler is attached when prepare is called. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fuse::runtime {

class ProfilerRanges {
 public:
  virtual ~ProfilerRanges() = default;
  /// The thread is in the range of this name until pop. Neither allocates in our code.
  virtual void push(std::size_t name) const noexcept = 0;
  virtual void pop() const noexcept = 0;
};

/// False where this build has no NVTX, too.
bool profiler_attached() noexcept;
/// Null where no profiler is attached.
std::unique_ptr<const ProfilerRanges> profiler_ranges(const std::vector<std::string>& names);

/// While one lives, the thread is in a range; null ranges are none.
class ProfilerRange {
 public:
  ProfilerRange(const ProfilerRanges* ranges, std::size_t name) noexcept : ranges_(ranges) {
    if (ranges_) [[unlikely]]
      ranges_->push(name);
  }
  ~ProfilerRange() {
    if (ranges_) [[unlikely]]
      ranges_->pop();
  }
  ProfilerRange(const ProfilerRange&) = delete;
  ProfilerRange& operator=(const ProfilerRange&) = delete;

 private:
  const ProfilerRanges* ranges_;
};

}  // namespace fuse::runtime
