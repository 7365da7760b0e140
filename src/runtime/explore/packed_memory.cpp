// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/packed_memory.hpp"

#include "base/access.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

PackedMemory::PackedMemory(const Executable& executable, const Prepared& prepared)
    : device_(executable.device()), memory_(device_.allocate(prepared.packed_bytes())) {}

Status PackedMemory::pack(const Prepared& prepared, Stream& stream, std::span<const BufferView> buffers,
                          std::uint64_t parameters) {
  const std::lock_guard lock(mutex_);
  if (packed_for_ == parameters || prepared.packed_bytes() == 0) return {};
  if (backend_of(device_)->captures(queue_of(stream)))
    return {ErrorCode::invalid_argument,
            "parameters have to be packed, and the stream is being captured: run once before the capture"};
  if (Status failed = prepared.pack(stream, buffers, memory_.view()); !failed) return failed;
  // Runs on other streams read what this one packs.
  if (Status failed = stream.synchronize(); !failed) return failed;
  packed_for_ = parameters;
  return {};
}

}  // namespace fuse::runtime
