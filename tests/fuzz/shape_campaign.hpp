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
  /// Of all values of a graph at a shape, where it has some; some shapes have 12 times as many.
  std::int64_t most_elements = 400'000;
};

/// Compiles each graph once, with versions; runs it for random shapes (odd, prime, 1, 0, few rows and many),
/// judges every result, and prints which versions were taken. Results are judged by the running error
/// analysis, or where that decides too little at the first shape, as `fusec run --check` does. While shapes
/// run there is no compiler. 0 where all is right.
int run_shape_campaign(const ShapeSettings&);

}  // namespace fuse::fuzz
