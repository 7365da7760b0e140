// Which algorithm of its library a GEMM runs with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::schedule {

struct GemmAlgorithm {
  std::uint32_t rank = 0;  ///< in the list that the library proposes, the one that it prefers first
  int line = 0;            ///< of the decisions that say so; 0: nobody did
  bool operator==(const GemmAlgorithm&) const = default;
};

}  // namespace fuse::schedule
