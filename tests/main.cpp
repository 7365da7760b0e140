// The tests' main. Runs are held to their contract, and every allocation in one is noticed.
// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <new>

#include "runtime/contract.hpp"
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
#endif

#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
// The sanitizers have their own.
void* operator new(std::size_t bytes) {
  fuse::runtime::contract::forbid("allocates");
  if (void* const memory = std::malloc(bytes ? bytes : 1)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

int main(int argc, char** argv) {
  ::setenv("FUSE_CONTRACT", "1", 0);
  return Catch::Session().run(argc, argv);
}
