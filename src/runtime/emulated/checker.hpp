// Checked mode: judges each access of a running thread and counts it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "runtime/emulated/launch.hpp"

namespace fuse::runtime::emulated {

class Checker {
 public:
  void begin(Launch& launch);
  /// Adds this runner's counts to the launch.
  void end();

  void begin_block(std::uint64_t block);
  /// The launch's blocks have new numbers: what any of them did before is ordered before what follows.
  void pass_grid_barrier();
  /// A barrier of the block begins this epoch, for all memory or for shared memory alone.
  void pass_block_barrier(std::uint32_t epoch, bool shared_only) {
    now.epoch = epoch;
    if (!shared_only) global_epoch_ = epoch;
  }
  /// A barrier of the cluster begins this epoch in all of its blocks.
  void pass_cluster_barrier(std::uint32_t epoch, bool shared_only) {
    pass_block_barrier(epoch, shared_only);
    now.cluster_epoch = epoch;
    if (!shared_only) global_cluster_epoch_ = epoch;
    peer_read_.reset();
  }
  /// Each thread of the cluster arrived before it came here. That orders nothing, but reads of other blocks'
  /// shared memory before their end.
  void pass_cluster_wait() {
    if (peer_read_ && !peer_read_->late) peer_read_.reset();
  }
  /// The same of a group of so many blocks, from its own number of them on.
  void pass_group_barrier(std::uint32_t epoch, std::uint32_t blocks) {
    now.cluster = blocks;
    pass_cluster_barrier(epoch, false);
  }
  /// Whether a grid barrier may count there: in a buffer that the kernel writes, and that holds a value.
  bool is_counter(const int* address) const;
  /// The lanes of one warp run next, from one rendezvous to the following one.
  void begin_epoch();
  void shared_array(const char* name, int size, std::int64_t count);

  struct Request {
    int object;  ///< parameter, or ~number of a shared array
    std::int64_t index;
    int size;   ///< the size of an element
    int count;  ///< elements, accessed at once
    int line;
    bool store;
    Checker* owner = nullptr;  ///< the shared array's owner, where that is another block of the cluster
    bool late = false;         ///< the thread has arrived for its cluster, and not waited
  };
  /// False: the access must not happen, and `fault` says why.
  bool access(const Request& request);
  /// False, with the reader's `fault`: another block of the cluster read this one's shared memory, and no
  /// barrier of theirs came after that, so that this one may have ended before.
  bool outlives_readers();
  void count_op(int number) { ++ops_[static_cast<std::size_t>(number)]; }
  /// Reports an access of a thread's own array that is out of bounds, or a read of what was never written.
  void blame_local(const char* name, std::int64_t index, std::int64_t count, bool store, int line);
  /// Whether an index that names none of `count` elements is a fault of this launch; then `fault` says so.
  bool refuses_index(std::int64_t index, std::int64_t count, int line);

  Fault fault;
  Point now;
  /// A read of bytes nobody wrote so far. A race found later is the better explanation: without it this one
  /// is reported, for shared memory when the block ends, for global memory when the launch ends.
  std::optional<Fault> pending;

 private:
  // 32-byte sectors that the lanes of a warp touched in one execution of an access site.
  struct Sectors {
    static constexpr std::uint32_t inline_count = 7;
    std::uint32_t count = 0;
    std::array<std::uint32_t, inline_count> sector;  // the last one is the index of a spill, once spilled
  };
  struct Site {
    std::vector<Sectors> executions;
    std::uint32_t used = 0;
    std::array<std::uint32_t, 32> lane{};  // executions so far, by lane
  };
  struct SharedArray {
    const char* name;
    int size;
    std::int64_t count;
    std::size_t first_cell;
  };
  struct SharedCell {
    Access write;
    Readers readers;
  };
  struct PeerRead {
    Fault fault{};
    bool late = false;  // see Request
  };

  bool global_access(const Request& request);
  bool shared_access(const Request& request);
  bool cell_access(SharedCell& cell, const Request& request);
  bool element_access(const View& view, std::int64_t byte, const Request& request);
  bool race_free(const View& view, std::uintptr_t address, const Request& request);
  bool blame(Fault::Kind kind, const Request& request, std::int64_t limit = 0);
  bool blame_race(const Access& earlier, bool was_store, const Request& request);
  void suspect_unwritten(const Request& request);
  void note_peer_read(const Request& request);
  std::uint64_t block() const { return now.block - launch_->first_block; }
  void count(const Request& request, std::int64_t byte);
  bool new_sector(Sectors& sectors, std::uint32_t sector);

  Launch* launch_ = nullptr;
  std::vector<AccessCounts> counts_;
  std::vector<std::int64_t> ops_;
  std::vector<SharedArray> arrays_;
  std::vector<SharedCell> cells_;
  // The number in the histories of shared memory: that of the cluster's first block: this runner's blocks,
  // counted, for they come in any order. The runners of a cluster count alike.
  std::uint32_t shared_block_ = 0;
  std::uint32_t rank_ = 0;  // in the cluster
  // A read of this block's shared memory with no barrier of the cluster after it; a late one rather than
  // another.
  std::optional<PeerRead> peer_read_;
  // The current epochs in the histories of global memory.
  std::uint32_t global_epoch_ = 1, global_cluster_epoch_ = 1;
  std::vector<std::uint16_t> site_of_;  // by (line, parameter, load or store); 0: not seen yet
  std::vector<Site> sites_;
  std::vector<std::array<std::uint32_t, 32>> spills_;
  std::size_t used_spills_ = 0;
  int lines_ = 1;
};

}  // namespace fuse::runtime::emulated
