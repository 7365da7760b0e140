// Excess: what a way to run takes beyond the best one in a cell, as a number whose sum over cells says how
// good a choice for all of them is. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>

namespace fuse::schedule {

/// A way that takes twice as long as the best one in one cell is worse than one that takes 10% longer in ten.
inline double excess_of(double ratio) {
  const double excess = std::log(ratio);
  return excess + 30 * excess * excess;
}

/// The excess of a way that cannot run.
inline constexpr double forbidden_excess = 1e4;
/// That of one whose cost is not known in a cell: tiles of a transpose with a short side. In a region that
/// has other cells, too, it may run.
inline constexpr double unknown_excess = 3;

}  // namespace fuse::schedule
