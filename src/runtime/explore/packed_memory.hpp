// PackedMemory: what an executable packs of its parameters, once for all dims and streams.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <mutex>
#include <span>

namespace fuse::runtime {

/// Threads may share it.
class PackedMemory {
 public:
  /// Throws out_of_memory.
  explicit PackedMemory(const Executable&, const Prepared&);

  /// Packs, unless these parameters are packed, and waits for that. A stream that is being captured is
  /// refused then. Throws what a driver reports.
  Status pack(const Prepared&, Stream&, std::span<const BufferView>, std::uint64_t parameters);
  BufferView view() const { return memory_.view(); }

 private:
  const Device device_;
  const Buffer memory_;
  std::mutex mutex_;
  std::uint64_t packed_for_ = 0;  // the parameters that are packed; 0: none
};

}  // namespace fuse::runtime
