// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <fuse/memory.hpp>
#include <limits>
#include <map>
#include <mutex>

namespace fuse {
inline namespace v0 {
namespace {

/// Eight sizes between powers of two, multiples of 256: near sizes share blocks, and little is wasted.
std::int64_t block_size(std::int64_t bytes) {
  const auto power = static_cast<std::int64_t>(std::bit_floor(static_cast<std::uint64_t>(bytes)));
  const std::int64_t step = std::max<std::int64_t>(power / 8, 256);
  if (bytes > std::numeric_limits<std::int64_t>::max() - step) return bytes;  // which no device has
  return (bytes + step - 1) / step * step;
}

}  // namespace

MemoryResource::~MemoryResource() = default;

struct MemoryPool::Impl {
  using Blocks =
      std::multimap<std::int64_t, Buffer>;  ///< by size; nodes move between the two without allocating

  Device device;
  std::int64_t most_kept;
  mutable std::mutex mutex{};
  Blocks used{}, kept{};
  Use use{};
};

MemoryPool::MemoryPool(Device device, std::int64_t most_kept)
    : impl_(new Impl{.device = std::move(device), .most_kept = most_kept}) {}
MemoryPool::~MemoryPool() = default;

void* MemoryPool::allocate(std::int64_t bytes) {
  if (bytes < 1) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("a memory pool has no block of {} bytes", bytes)});
  }
  const std::int64_t size = block_size(bytes);
  {
    const std::lock_guard lock(impl_->mutex);
    if (auto node = impl_->kept.extract(size)) {
      impl_->use.kept -= size;
      impl_->use.in_use += size;
      return impl_->used.insert(std::move(node))->second.address();
    }
  }
  // Not under the lock: a device takes its time.
  Buffer block;
  try {
    block = impl_->device.allocate(size);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::out_of_memory) throw;
    trim();
    block = impl_->device.allocate(size);
  }
  const std::lock_guard lock(impl_->mutex);
  void* const address = impl_->used.emplace(size, std::move(block))->second.address();
  impl_->use.in_use += size;
  impl_->use.peak = std::max(impl_->use.peak, impl_->use.in_use + impl_->use.kept);
  return address;
}

void MemoryPool::deallocate(void* address, std::int64_t bytes) noexcept {
  const std::int64_t size = block_size(bytes);
  Impl::Blocks::node_type node;  // what it holds is freed after the lock is
  const std::lock_guard lock(impl_->mutex);
  const auto [begin, end] = impl_->used.equal_range(size);
  const auto found =
      std::find_if(begin, end, [&](const auto& block) { return block.second.address() == address; });
  if (found == end) return;  // not given out here: nothing of ours to keep
  node = impl_->used.extract(found);
  impl_->use.in_use -= size;
  if (impl_->use.kept + size > impl_->most_kept) return;
  impl_->use.kept += size;
  impl_->kept.insert(std::move(node));
}

void MemoryPool::trim() noexcept {
  Impl::Blocks dropped;
  const std::lock_guard lock(impl_->mutex);
  dropped.swap(impl_->kept);
  impl_->use.kept = 0;
}

MemoryPool::Use MemoryPool::use() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->use;
}

}  // namespace v0
}  // namespace fuse
