// MemoryResource: where a device's buffers, workspaces and sessions take their memory from. MemoryPool keeps
// freed blocks for the next allocation of their size.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/export.hpp>
#include <memory>

namespace fuse {
inline namespace v0 {

/// Memory of one device, to be given to Device::with_memory. Called by any thread, and never inside a run.
class FUSE_COMPILER_API MemoryResource {
 public:
  virtual ~MemoryResource();
  /// `bytes` (1 or more), 256-byte aligned, contents undefined. Null where there is none, which becomes an
  /// out_of_memory Error; what it throws passes through.
  virtual void* allocate(std::int64_t bytes) = 0;
  /// What allocate gave for as many bytes. A Workspace gives its memory back after its last run is over; the
  /// memory of a Buffer comes back when the last copy of the Buffer is destroyed, whatever still works on it.
  virtual void deallocate(void* address, std::int64_t bytes) noexcept = 0;
};

/// Keeps what is given back, for the next block of about the size: on a GPU allocating takes long, and
/// freeing waits for all work of the device. A block is given out again at once, so a Buffer has to outlive
/// the work on it. On a checked emulated device an access to memory that was given back is then no longer
/// found. Thread safe.
class FUSE_COMPILER_API MemoryPool final : public MemoryResource {
 public:
  /// How much memory the pool has, in bytes.
  struct Use {
    std::int64_t in_use = 0;  ///< bytes given out, rounded up by at most an eighth or 256
    std::int64_t kept = 0;    ///< bytes waiting to be given out
    std::int64_t peak = 0;    ///< the most that both together have been
  };

  /// A pool of `device`'s memory. A block that would make it keep more than `most_kept` bytes goes back to
  /// the device.
  explicit MemoryPool(Device device, std::int64_t most_kept = std::int64_t{256} << 20);
  ~MemoryPool() override;

  /// Throws what Device::allocate throws, once nothing is kept any more; invalid_argument for fewer than 1
  /// byte.
  void* allocate(std::int64_t bytes) override;
  /// Keeps the block for the next allocation, or gives it back to the device where more than `most_kept`
  /// bytes would be kept. An address that the pool did not give is ignored.
  void deallocate(void* address, std::int64_t bytes) noexcept override;
  /// Gives all that is kept back to the device.
  void trim() noexcept;
  /// What the pool has now.
  Use use() const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace v0
}  // namespace fuse
