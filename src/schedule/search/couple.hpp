// Coupling: loops that a design may as well treat alike become one variable (Dali, 2.3 and its footnote 2).
//
// Before:  b of max, b of exp, b of sum, c of exp, c of sum    5 variables
// After:   {b of max, exp, sum} {c of exp, sum}                2
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "schedule/search/loops.hpp"

namespace fuse::schedule {

struct CoupledLoops {
  std::vector<std::size_t> class_of{};              ///< of each loop
  std::vector<std::vector<std::size_t>> classes{};  ///< loops of each class, by the first loop of each
  std::size_t coupled = 0;                          ///< loops that follow another one of their class
  std::int64_t designs_before = 1;                  ///< ways to bind all loops, each by itself
  std::int64_t designs_after = 1;                   ///< ways to bind the classes
};

/// The ways to bind a loop: each trip after the other, threads, and, where it may be, blocks, and blocks of
/// threads. The paper prints no list; this one gives its 4 million and 512.
std::int64_t options_of(const Loop&);

/// Two loops are of one class where one descends from the other, their extents are the same expression, and
/// both may be blocks, or neither, and both may be threads, or neither. Counts stop at the largest number.
CoupledLoops coupled(const std::vector<Loop>&);

}  // namespace fuse::schedule
