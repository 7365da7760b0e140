// Runs blocks of a launch on one OS thread at a time: threads of a block as fibers, or in a plain loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <vector>

#include "runtime/emulated/checker.hpp"
#include "runtime/emulated/fiber.hpp"
#include "runtime/emulated/launch.hpp"

namespace fuse::runtime::emulated {

class Runner {
 public:
  Runner();
  Runner(const Runner&) = delete;
  Runner& operator=(const Runner&) = delete;

  /// Takes blocks from the launch until none is left or it failed. Does not throw.
  void run(Launch& launch) noexcept;

  /// A block of a launch that spins runs from one grid barrier to the next; each time another OS thread may
  /// be the one. Not to be called again after `ended` or `failed`. These do not throw.
  enum class Stop : std::uint8_t { ended, grid_barrier, failed };
  Stop start(Launch& launch, std::uint64_t block) noexcept;
  Stop resume() noexcept;
  /// Gives up a block that waits.
  void leave() noexcept;
  Place waits() const { return here(0); }
  int* counter() const { return counter_; }  ///< of the grid barrier that it waits in

 private:
  enum class Wait : std::uint8_t { none, exchange, barrier, grid_barrier };
  struct Lane {  // what one thread of the block waits for
    Wait wait = Wait::none;
    bool parity = false;  // of its exchanges: a warp has two buffers, so that a quick lane overwrites nothing
    const char* what = nullptr;
    int line = 0;
  };
  struct SharedArray {
    const char* name;
    int line;
    std::int64_t offset;
  };

  // The hooks of the kernels' call table.
  static Slots* exchange(void* self, unsigned long long bits, const char* what, int line);
  static void barrier(void* self, int line);
  static void local_fault(void* self, const char* name, long long index, long long count, int store,
                          int line);
  static void grid_barrier(void* self, int* counter, int line);
  static Array shared(void* self, int size, long long count, const char* name, int line);
  static void begin_thread(void* self, unsigned long long block, unsigned thread);
  template <bool store>
  static void check(void* self, int object, long long index, int size, int line);

  void begin(Launch& launch);
  void end();
  bool run_blocks(std::uint64_t first, std::uint64_t last);
  bool run_loop(std::uint64_t first, std::uint64_t last);
  void enter(std::uint64_t block);
  Stop advance();
  Stop stopped(Stop stop);
  template <class F>
  Stop guarded(F&& body) noexcept;
  bool run_warp(unsigned warp);
  bool block_ended();
  void place(std::uint64_t block);
  void shuffle(std::vector<unsigned>& order, std::size_t from, std::size_t to);
  Place here(unsigned thread) const;
  void fail(Fault fault);
  // Called on a fiber: records the fault and leaves the fiber for good.
  [[noreturn]] void fail_and_leave(const Fault& fault);
  void abandon_all();

  Launch* launch_ = nullptr;
  Call call_{};
  FiberPool fibers_;  // the last one runs loops
  Fiber* current_ = nullptr;
  std::vector<Lane> lanes_;
  std::vector<std::array<Slots, 2>> slots_;  // by warp
  std::vector<std::uint32_t> clocks_;        // by warp
  std::vector<unsigned> lane_order_, warp_order_;
  std::uint64_t random_ = 0;
  unsigned threads_ = 0;
  bool failed_ = false;
  bool looping_ = false;
  std::int64_t barriers_ = 0;
  int* counter_ = nullptr;

  std::vector<char> arena_;
  std::int64_t arena_used_ = 0, shared_bytes_ = 0;
  std::vector<SharedArray> arrays_;
  Checker checker_;
};

}  // namespace fuse::runtime::emulated
