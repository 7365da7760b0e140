// The places that a device's multiprocessors have for blocks of several launches at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/residency.hpp"

namespace fuse::runtime::emulated {

using schedule::Share;

/// Of one launch alone, schedule::blocks_per_sm blocks fit a multiprocessor.
class Places {
 public:
  explicit Places(const Target&);
  /// The multiprocessor that holds one more block now; none where no one has room. Looks behind the one that
  /// was taken last, so that blocks spread out as on a GPU.
  std::optional<std::size_t> take(const Share&);
  void give_back(std::size_t multiprocessor, const Share&);

 private:
  std::vector<Share> free_;
  std::size_t next_ = 0;
};

}  // namespace fuse::runtime::emulated
