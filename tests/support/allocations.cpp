// Every allocation in the tests says so, which a run refuses while it is held to its contract.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <new>

#include "runtime/device/hot_path_check.hpp"

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)  // they have their own
void* operator new(std::size_t bytes) {
  fuse::runtime::contract::forbid("allocates");
  if (void* const memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif
