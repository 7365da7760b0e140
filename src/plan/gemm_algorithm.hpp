// Which algorithm of its library a GEMM runs with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::schedule {

struct GemmAlgorithm {
  std::uint32_t rank = 0;  ///< position in the library's list, which has the preferred one first
  int line = 0;            ///< line of the decisions that say so; 0: none
  bool operator==(const GemmAlgorithm&) const = default;
};

}  // namespace fuse::schedule
