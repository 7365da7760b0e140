// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/places.hpp"

namespace fuse::runtime::emulated {

Places::Places(const Target& target)
    : free_(static_cast<std::size_t>(target.sms), schedule::share_of_multiprocessor(target)) {}

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
