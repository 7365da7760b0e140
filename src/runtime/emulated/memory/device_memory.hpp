// Device memory: the allocations, and in checked mode a byte of shadow for each byte (1: written).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/error.hpp>
#include <map>
#include <optional>
#include <shared_mutex>
#include <string>

namespace fuse::runtime::emulated {

/// A range inside one allocation.
struct Span {
  char* address = nullptr;
  std::uint8_t* written = nullptr;  ///< the shadow of `address`; null in plain mode
  std::int64_t offset = 0;          ///< from the allocation's start
  std::int64_t room = 0;            ///< bytes from `address` to the allocation's end
};

class Memory {
 public:
  explicit Memory(bool checked) : checked_(checked) {}
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* allocate(std::int64_t bytes);
  /// False for an address that allocate did not give.
  bool release(void* address) noexcept;
  /// Empty unless [address, address + bytes) lies in one live allocation.
  std::optional<Span> find(const void* address, std::int64_t bytes) const noexcept;
  std::size_t live() const noexcept;

 private:
  struct Block {
    std::int64_t bytes = 0;
    std::uint8_t* written = nullptr;
  };
  static void drop(std::uintptr_t address, const Block& block) noexcept;

  const bool checked_;
  mutable std::shared_mutex mutex_;
  std::map<std::uintptr_t, Block> blocks_;
};

/// Marks bytes written or not; safe beside other threads that do the same.
void mark(std::uint8_t* written, std::int64_t bytes, bool value) noexcept;
/// The first byte that nobody wrote; empty if all were.
std::optional<std::int64_t> first_unwritten(const std::uint8_t* written, std::int64_t bytes) noexcept;

}  // namespace fuse::runtime::emulated
