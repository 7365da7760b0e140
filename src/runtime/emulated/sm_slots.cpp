// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/sm_slots.hpp"

#include <algorithm>

namespace fuse::runtime::emulated {

SmSlots::SmSlots(const Target& target) {
  Room room{.slots = target.max_blocks_per_sm, .shared = target.shared_per_sm};
  room.subpartitions.fill(schedule::subpartition_of(target));
  free_.resize(static_cast<std::size_t>(target.sms), room);
}

std::optional<BlockSlot> SmSlots::take(const Share& share) {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    BlockSlot slot{.multiprocessor = (next_ + i) % free_.size()};
    Room after = free_[slot.multiprocessor];
    after.slots -= 1;
    after.shared -= share.shared;
    bool fits = after.slots >= 0 && after.shared >= 0;
    for (int warp = 0; fits && warp < share.warps; ++warp) {
      const auto roomiest =
          std::max_element(after.subpartitions.begin(), after.subpartitions.end(),
                           [&](const schedule::SubPartition& a, const schedule::SubPartition& b) {
                             return a.warps_of(share.registers) < b.warps_of(share.registers);
                           });
      fits = roomiest->warps_of(share.registers) > 0;
      roomiest->warps -= 1;
      roomiest->registers -= share.registers;
      ++slot.warps[static_cast<std::size_t>(roomiest - after.subpartitions.begin())];
    }
    if (!fits) continue;
    free_[slot.multiprocessor] = after;
    next_ = (slot.multiprocessor + 1) % free_.size();
    return slot;
  }
  return {};
}

void SmSlots::give_back(const BlockSlot& slot, const Share& share) {
  Room& room = free_[slot.multiprocessor];
  room.slots += 1;
  room.shared += share.shared;
  for (std::size_t i = 0; i < room.subpartitions.size(); ++i) {
    room.subpartitions[i].warps += slot.warps[i];
    room.subpartitions[i].registers += slot.warps[i] * share.registers;
  }
}

}  // namespace fuse::runtime::emulated
