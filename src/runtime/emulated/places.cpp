// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/places.hpp"

#include <algorithm>

namespace fuse::runtime::emulated {
namespace {

constexpr std::int64_t most_registers = 255;    // of a thread
constexpr std::int64_t register_unit = 256;     // a warp's registers are handed out in these
constexpr std::int64_t shared_reserved = 1024;  // of each block, by the driver

}  // namespace

Share share_of(const schedule::Residency& launch, const Target& target) {
  const std::int64_t warps =
      std::max<std::int64_t>(1, (launch.threads + target.warp_size - 1) / target.warp_size);
  const std::int64_t threads = warps * target.warp_size;
  const std::int64_t registers = launch.registers != schedule::Residency::unknown
                                     ? launch.registers
                                     : std::min(most_registers, target.registers_per_sm / threads);
  const std::int64_t of_warp =
      (registers * target.warp_size + register_unit - 1) / register_unit * register_unit;
  return {1, threads, warps * of_warp, launch.shared_bytes > 0 ? launch.shared_bytes + shared_reserved : 0};
}

Places::Places(const Target& target)
    : free_(static_cast<std::size_t>(target.sms), Share{target.max_blocks_per_sm, target.max_threads_per_sm,
                                                        target.registers_per_sm, target.shared_per_sm}) {}

std::optional<std::size_t> Places::take(const Share& share) {
  for (std::size_t i = 0; i < free_.size(); ++i) {
    const std::size_t sm = (next_ + i) % free_.size();
    Share& room = free_[sm];
    bool fits = true;
    for (std::size_t k = 0; k < share.size(); ++k) fits = fits && share[k] <= room[k];
    if (!fits) continue;
    for (std::size_t k = 0; k < share.size(); ++k) room[k] -= share[k];
    next_ = (sm + 1) % free_.size();
    return sm;
  }
  return {};
}

void Places::give_back(std::size_t multiprocessor, const Share& share) {
  for (std::size_t k = 0; k < share.size(); ++k) free_[multiprocessor][k] += share[k];
}

}  // namespace fuse::runtime::emulated
