// Which algorithm of its library a GEMM runs with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "plan/versions/version_table.hpp"

namespace fuse::schedule {

struct GemmAlgorithm {
  std::uint32_t rank = 0;  ///< position in the library's list, which has the preferred one first
  int line = 0;            ///< line of the decisions that say so; 0: none
  bool operator==(const GemmAlgorithm&) const = default;
};

/// The algorithms that were fastest when they were timed, by buckets of a GEMM's extents (BladeDISC, 5.2.2).
struct GemmAlgorithms {
  VersionTable table{};
  /// By the version that the table gives; empty: what the library proposes for the exact extents.
  std::vector<std::string> recorded{};
  std::string library{};  ///< whose algorithms these are; another one does not know them
  bool operator==(const GemmAlgorithms&) const = default;
};

}  // namespace fuse::schedule
