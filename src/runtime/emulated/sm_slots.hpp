// The slots on a device's multiprocessors for blocks of several launches at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "target/residency.hpp"

namespace fuse::runtime::emulated {

using schedule::Share;

/// The slot of a block: the warps that each subpartition of its multiprocessor has of it.
struct BlockSlot {
  std::size_t multiprocessor = 0;
  std::array<int, schedule::subpartitions_per_sm> warps{};
  bool operator==(const BlockSlot&) const = default;
};

/// The slots. For one launch alone, schedule::blocks_per_sm blocks fit a multiprocessor.
class SmSlots {
 public:
  explicit SmSlots(const Target&);
  /// A slot for one more block; none where no multiprocessor has room. Looks after the one that was taken
  /// last, so that blocks spread out as on a GPU.
  std::optional<BlockSlot> take(const Share&);
  void give_back(const BlockSlot&, const Share&);

 private:
  struct Room {
    int slots = 0;
    std::int64_t shared = 0;
    std::array<schedule::SubPartition, schedule::subpartitions_per_sm> subpartitions{};
  };
  std::vector<Room> free_;
  std::size_t next_ = 0;
};

}  // namespace fuse::runtime::emulated
