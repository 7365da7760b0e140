// A device's own memory by way of a MemoryResource that counts, fails on demand, and can give bad addresses.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/fuse.hpp>
#include <map>

namespace fuse::test {

class CountingResource final : public MemoryResource {
 public:
  explicit CountingResource(Device from) : device_(std::move(from)) {}

  void* allocate(std::int64_t bytes) override {
    const int now = allocations++;
    if (now == fails_at) return fail ? fail() : nullptr;
    Buffer block = device_.allocate(bytes + shift);
    auto* const address = static_cast<std::byte*>(block.address()) + shift;
    blocks_.emplace(address, std::pair{bytes, std::move(block)});
    return address;
  }
  void deallocate(void* address, std::int64_t bytes) noexcept override {
    if (on_return) on_return();
    const auto found = blocks_.find(address);
    if (found == blocks_.end() || found->second.first != bytes) {
      ++strangers;
      return;
    }
    blocks_.erase(found);
  }

  std::size_t live() const { return blocks_.size(); }

  int allocations = 0, strangers = 0;
  int fails_at = -1;
  std::function<void*()> fail{};  ///< what the call that fails does; none: it gives null
  std::function<void()> on_return{};
  std::int64_t shift = 0;  ///< of addresses

 private:
  Device device_;
  std::map<void*, std::pair<std::int64_t, Buffer>> blocks_{};
};

}  // namespace fuse::test
