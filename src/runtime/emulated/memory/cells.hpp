// Race detection by epochs: who wrote an element last, and who read it since. The verdict depends on the
// barriers that ran, never on the order in which threads happened to run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>

namespace fuse::runtime::emulated {

/// One access. Blocks of all launches are numbered through, so an old record is one with a small number.
struct Access {
  std::uint32_t block = 0;
  std::uint32_t clock = 0;
  std::uint32_t thread : 10 = 0;
  std::uint32_t line : 22 = 0;
};

/// Where the running thread stands. Clocks count a warp's rendezvous; a block barrier sets those of all
/// warps to one new value, `epoch`, above every earlier one; so does a cluster's, for all warps of its
/// blocks.
struct Point {
  std::uint32_t oldest = 1;  ///< the launch's first block: records below it are void
  std::uint32_t block = 1;
  std::uint32_t clock = 1;
  std::uint32_t epoch = 1;
  std::uint32_t cluster = 1;        ///< blocks of a cluster, which are numbered from a multiple of it
  std::uint32_t cluster_epoch = 1;  ///< the epoch that its last barrier began
  std::uint32_t thread = 0;
};

/// The history of one element. Two readers are enough: they are kept so that any store that conflicts with
/// some reader conflicts with one of the two (different blocks, else different warps, else different lanes).
struct Readers {
  Access a, b;
};

/// Records a load (or a store) of `line` at `now`, and returns the earlier access it races with, or a record
/// of block 0. `was_store` says what that one was.
Access visit_load(const Access& write, Readers& readers, const Point& now, int line);
Access visit_store(Access& write, const Readers& readers, const Point& now, int line, bool& was_store);

/// Histories of global memory for one launch at a time; kept between launches without clearing.
class Cells {
 public:
  Cells() = default;
  ~Cells();
  Cells(const Cells&) = delete;
  Cells& operator=(const Cells&) = delete;

  /// Room for `count` elements and `blocks` blocks; returns the number of the first block.
  /// Throws std::bad_alloc.
  std::uint32_t prepare(std::size_t count, std::uint64_t blocks);
  Access& write(std::size_t i) { return writes_[i]; }
  Readers& readers(std::size_t i) { return readers_[i]; }
  /// Blocks on several OS threads meet at an element only where the kernel has a race.
  std::atomic_flag& lock(std::size_t i) { return locks_[i / 16 % locks_.size()]; }

 private:
  void release() noexcept;
  Access* writes_ = nullptr;
  Readers* readers_ = nullptr;
  std::size_t capacity_ = 0;
  std::uint32_t next_ = 1;
  std::array<std::atomic_flag, 256> locks_{};
};

}  // namespace fuse::runtime::emulated
