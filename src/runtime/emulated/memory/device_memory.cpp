// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/memory/device_memory.hpp"

#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <mutex>

namespace fuse::runtime::emulated {
namespace {

constexpr std::int64_t alignment = 256;

std::int64_t padded(std::int64_t bytes) {
  return std::max<std::int64_t>((bytes + alignment - 1) / alignment * alignment, alignment);
}

std::int64_t physical_bytes() {
  const long pages = sysconf(_SC_PHYS_PAGES), page = sysconf(_SC_PAGESIZE);
  return pages > 0 && page > 0 ? static_cast<std::int64_t>(pages) * page : std::int64_t{1} << 40;
}

[[noreturn]] void out_of_memory(std::int64_t bytes) {
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::out_of_memory,
               .message = fmt::format("the emulated device cannot allocate {} bytes", bytes)});
}

}  // namespace

Memory::~Memory() {
  for (const auto& [address, block] : blocks_) drop(address, block);
}

void Memory::drop(std::uintptr_t address, const Block& block) noexcept {
  std::free(reinterpret_cast<void*>(address));
  if (block.written) munmap(block.written, static_cast<std::size_t>(padded(block.bytes)));
}

void* Memory::allocate(std::int64_t bytes) {
  if (bytes < 0) {
    throw Error(
        {.code = ErrorCode::invalid_argument, .message = fmt::format("an allocation of {} bytes", bytes)});
  }
  static const std::int64_t most = physical_bytes();
  if (bytes > most) out_of_memory(bytes);
  const auto size = static_cast<std::size_t>(padded(bytes));
  void* address = std::aligned_alloc(alignment, size);
  if (!address) out_of_memory(bytes);
  Block block{bytes, nullptr};
  if (checked_) {
    // Fresh pages are zero: nothing is written yet, and only pages in use take memory.
    void* shadow = mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (shadow == MAP_FAILED) {
      std::free(address);
      out_of_memory(bytes);
    }
    block.written = static_cast<std::uint8_t*>(shadow);
  }
  const std::lock_guard lock(mutex_);
  blocks_.emplace(reinterpret_cast<std::uintptr_t>(address), block);
  return address;
}

bool Memory::release(void* address) noexcept {
  const std::lock_guard lock(mutex_);
  const auto at = blocks_.find(reinterpret_cast<std::uintptr_t>(address));
  if (at == blocks_.end()) return false;
  drop(at->first, at->second);
  blocks_.erase(at);
  return true;
}

std::optional<Span> Memory::find(const void* address, std::int64_t bytes) const noexcept {
  const auto key = reinterpret_cast<std::uintptr_t>(address);
  const std::shared_lock lock(mutex_);
  auto at = blocks_.upper_bound(key);
  if (at == blocks_.begin() || bytes < 0) return {};
  --at;
  const Block& block = at->second;
  // Unsigned: the nearest allocation may be more than 2^63 below.
  if (key - at->first > static_cast<std::uintptr_t>(block.bytes)) return {};
  const auto offset = static_cast<std::int64_t>(key - at->first);
  if (bytes > block.bytes - offset) return {};
  return Span{reinterpret_cast<char*>(key), block.written ? block.written + offset : nullptr, offset,
              block.bytes - offset};
}

std::size_t Memory::live() const noexcept {
  const std::shared_lock lock(mutex_);
  return blocks_.size();
}

void mark(std::uint8_t* written, std::int64_t bytes, bool value) noexcept {
  // Eight flags at a time; the ends one by one.
  const std::uint64_t word = value ? 0x0101010101010101 : 0;
  std::int64_t i = 0;
  const auto byte = [&] {
    std::atomic_ref(written[i]).store(value, std::memory_order_relaxed);
    ++i;
  };
  while (i < bytes && reinterpret_cast<std::uintptr_t>(written + i) % 8 != 0) byte();
  for (; i + 8 <= bytes; i += 8) {
    __atomic_store_n(reinterpret_cast<std::uint64_t*>(written + i), word, __ATOMIC_RELAXED);
  }
  while (i < bytes) byte();
}

std::optional<std::int64_t> first_unwritten(const std::uint8_t* written, std::int64_t bytes) noexcept {
  std::int64_t i = 0;
  while (i < bytes) {
    if (i + 8 <= bytes && reinterpret_cast<std::uintptr_t>(written + i) % 8 == 0 &&
        __atomic_load_n(reinterpret_cast<const std::uint64_t*>(written + i), __ATOMIC_RELAXED) ==
            0x0101010101010101) {
      i += 8;
      continue;
    }
    if (!__atomic_load_n(written + i, __ATOMIC_RELAXED)) return i;
    ++i;
  }
  return {};
}

}  // namespace fuse::runtime::emulated
