// Runs blocks of a launch on one OS thread at a time: threads of a block as fibers, or in a plain loop.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
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

  /// A block that waits for others (see ClusterRunner) runs from one of their barriers to the next; each time
  /// another OS thread may be the one. `cluster` has the runners of all its blocks by rank, this one too.
  /// None of these throws.
  enum class Stop : std::uint8_t {
    ended,
    grid_barrier,
    cluster_barrier,
    shared_barrier,
    cluster_wait,
    failed
  };
  /// False: it failed.
  bool prepare(Launch& launch, std::uint64_t block,
               std::span<const std::unique_ptr<Runner>> cluster) noexcept;
  /// Not to be called again after `ended` or `failed`.
  Stop go() noexcept;
  /// Gives up what still waits. Until then the others of the cluster may look into the block's shared memory.
  void finish() noexcept;
  WaitPoint waits() const { return here(0); }
  int* counter() const { return counter_; }  ///< the counter of the grid barrier that it waits in
  /// How many blocks wait for each other there: 0 for all, 1 where the block is of no whole group.
  std::uint64_t group() const { return group_; }
  std::uint32_t epoch() const { return clocks_[0]; }  ///< the epoch at which it waits
  /// A barrier of the cluster begins this epoch in all of its blocks, for all memory or for shared memory
  /// alone.
  void pass_cluster_barrier(std::uint32_t epoch, bool shared_only);
  /// All threads of the cluster have arrived before.
  void pass_cluster_wait() { checker_.pass_cluster_wait(); }
  void pass_grid_barrier();
  /// A barrier of a group of so many blocks begins this epoch in all of them.
  void pass_group_barrier(std::uint32_t epoch, std::uint64_t blocks);
  /// A fault that shows once all blocks of the cluster have ended.
  std::optional<Fault> last_fault();

 private:
  enum class Wait : std::uint8_t {
    none,
    exchange,
    barrier,
    grid_barrier,
    cluster_barrier,
    shared_barrier,
    cluster_wait
  };
  struct Lane {  // what one thread of the block waits for
    Wait wait = Wait::none;
    bool parity = false;   // the parity of its exchanges: a warp has two buffers, so that a quick lane
                           // overwrites nothing
    bool arrived = false;  // it has arrived for the cluster, and not waited
    const char* what = nullptr;
    int line = 0;
  };
  struct SharedArray {
    const char* name;
    int line;
    int size;
    std::int64_t count;
    std::int64_t offset;
  };

  // The hooks of the kernels' call table.
  static Slots* exchange(void* self, unsigned long long bits, const char* what, int line);
  static void barrier(void* self, int line);
  static void local_fault(void* self, const char* name, long long index, long long count, int store,
                          int line);
  static void grid_barrier(void* self, int* counter, int line);
  static void group_barrier(void* self, int* counters, unsigned blocks, int line);
  static void cluster_barrier(void* self, int shared_only, int line);
  static void cluster_arrive(void* self, int line);
  static void cluster_wait(void* self, int line);
  static const char* peer(void* self, const char* array, long long index, long long rank, int size, int line);
  static Array shared(void* self, int size, long long count, const char* name, int line);
  static void outside(void* self, long long index, long long count, int line);
  static void count_op(void* self, int number);
  static void begin_thread(void* self, unsigned long long block, unsigned thread);
  template <bool store>
  static void check(void* self, int object, long long index, int size, int count, int line);

  void begin(Launch& launch);
  void end();
  bool run_blocks(std::uint64_t first, std::uint64_t last);
  bool run_loop(std::uint64_t first, std::uint64_t last);
  void enter(std::uint64_t block);
  Stop advance();
  void wait(Wait kind, const char* what, int line);
  /// The lane of the running thread, which comes to `what` of its cluster, having arrived before or not.
  Lane& cluster_lane(const char* what, bool arrived, int line);
  void wait_for_blocks(int* counter, std::uint64_t group, const char* what, int line);
  /// The shared array declared at that line, set up where nobody came to it before; none where it does not
  /// fit.
  std::optional<std::size_t> array(const char* name, int line, int size, long long count);
  std::optional<std::size_t> array_at(const char* address) const;
  bool run_warp(unsigned warp);
  bool block_ended();
  void place(std::uint64_t block);
  void shuffle(std::vector<unsigned>& order, std::size_t from, std::size_t to);
  WaitPoint here(unsigned thread) const;
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
  std::uint64_t group_ = 0;
  std::span<const std::unique_ptr<Runner>> cluster_;  // the cluster's runners; empty: no clusters

  std::vector<char> arena_;
  std::int64_t arena_used_ = 0, shared_bytes_ = 0;
  std::vector<SharedArray> arrays_;
  Checker checker_;
};

}  // namespace fuse::runtime::emulated
