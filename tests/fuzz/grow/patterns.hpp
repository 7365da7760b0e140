// Patterns: small graphs that lead to a form which random growth seldom reaches (forms.def). Growth goes on
// around them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "fuzz/grow/growing_graph.hpp"

namespace fuse::fuzz {

struct Pattern {
  double weight;
  std::int64_t most_elements;  ///< of a value of the program; 0: as drawn
  std::string_view profile;    ///< that half of its programs are compiled for; empty: none is preferred
  void (*make)(GrowingGraph&);
};
std::span<const Pattern> patterns();

}  // namespace fuse::fuzz
