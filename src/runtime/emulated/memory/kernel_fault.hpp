// What a checked (or stuck) kernel did wrong. Recorded as plain data on a fiber's small stack; the text is
// made later, on a full one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "plan/source.hpp"

namespace fuse::runtime::emulated {

/// A point in the run: which thread was where.
struct WaitPoint {
  std::uint64_t block = 0;
  unsigned thread = 0;
  int line = 0;
  bool store = false;
  const char* what = nullptr;  ///< "block_barrier", "warp_sum"; null: the thread has exited
};

struct Fault {
  enum class Kind : std::uint8_t {
    out_of_bounds,
    outside,  ///< an index of a gather, or the start of a dynamic slice, that would be clamped
    misaligned,
    unwritten,
    race,
    read_only,
    divergence,    ///< threads (or blocks) wait at different barriers or exchanges, or have exited
    partial_warp,  ///< an exchange in a warp with fewer than 32 lanes
    undeclared,    ///< a barrier in a kernel whose KernelInfo has none
    no_counter,    ///< the counter of a grid barrier is not in a written buffer of the kernel
    wrong_count,   ///< a grid barrier's counter is `index`, where `limit` arrivals were counted
    deadlock,      ///< blocks wait in grid barriers for blocks that have no slot
    rank,          ///< a load from the block of rank `index` of a cluster of `limit` blocks
    no_array,      ///< a load from another block of a cluster, where there is no shared array
    arrived,       ///< a thread comes to a barrier of its cluster, and has arrived for it
    not_arrived,   ///< a thread waits for its cluster, and has not arrived
    ended,         ///< the block whose shared memory is read may have ended before
    shared_size,   ///< more shared memory than KernelInfo has
    stack,
    memory,  ///< the machine ran out of memory
  };
  Kind kind = Kind::race;
  bool shared = false;
  bool local = false;       ///< the object is a thread's own array
  const char* object = "";  ///< name of the parameter or shared array
  std::int64_t index = 0;
  std::int64_t limit = 0;                ///< elements it has; bytes for shared_size
  std::optional<std::uint64_t> owner{};  ///< the block whose shared array it is, where several are concerned
  WaitPoint here{}, other{};
};

/// A launch that can never go on: each of its blocks waits in a grid barrier, has no slot, or has ended.
struct Stuck {
  const codegen::KernelInfo* kernel = nullptr;
  std::uint64_t blocks = 0, waiting = 0, without_slot = 0;
  int line = 0;  ///< where they wait
  const char* what = nullptr;
};

/// "deadlock on tiny2 (greedy): a: 2 of 3 blocks wait in grid_barrier at line 9 (%1 custom_call), 1 has no
/// slot; b: ..."
std::string describe_deadlock(std::span<const Stuck> launches, std::string_view device);

/// "softmax_0: race on shared 'partial'[3]: thread 32 reads at line 41 (%7 reduce_sum, softmax.sum), ..."
std::string describe(const Fault& fault, const codegen::KernelInfo& kernel);

}  // namespace fuse::runtime::emulated
