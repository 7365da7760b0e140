// Graphs from files, each run for many random shapes through one executable.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace fuse::fuzz {

struct ShapeSettings {
  std::uint64_t seed = 1;
  std::int64_t shapes = 0;  ///< of each graph
  std::vector<std::string> files{};
  std::string profile = "h200";
  bool checked = false;
  std::int64_t most_elements = 400'000;  ///< of all values of a graph at a shape; some have 12 times as many
};

/// Compiles each graph once, with versions; runs it for random shapes (odd, prime, 1, 0, few rows and many),
/// judges every result, and prints which versions were taken. While shapes run there is no compiler. 0 where
/// all is right.
int run_shape_campaign(const ShapeSettings&);

}  // namespace fuse::fuzz
