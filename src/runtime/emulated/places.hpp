// The places that a device's multiprocessors have for blocks of several launches at once.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "schedule/residency.hpp"

namespace fuse::runtime::emulated {

/// Block slots, threads, registers and bytes of shared memory of a multiprocessor.
using Share = std::array<std::int64_t, 4>;
/// What a block of the launch takes. Of one launch alone, schedule::blocks_per_sm fit.
Share share_of(const schedule::Residency&, const Target&);

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
