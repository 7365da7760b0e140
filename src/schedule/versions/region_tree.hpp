// The tree of cuts that divides a grid of cells into few regions, each with the candidate that is best for
// it. It knows no graph: numbers in, numbers out.
//
//   excess of two candidates in 1 x 4 cells: {0 0 1 2} {3 1 0 0}     most 2 regions
//   tree: columns up to 1: candidate 0, others: candidate 1; excess 0
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "plan/versions/version_table.hpp"

namespace fuse::schedule {

struct CellGrid {
  std::array<std::size_t, 2> cells{1, 1};  ///< along each axis
  /// Per candidate and cell (the second axis runs fastest): what it takes beyond the best, 0 or more. In
  /// cells that do not occur all have 0.
  std::vector<std::vector<double>> excess{};
};

struct RegionTree {
  struct Cut {
    std::size_t axis = 0;
    std::size_t last = 0;  ///< the last cell of the "yes" side
    VersionTable::Branch yes{}, no{};
  };
  struct Region {
    std::array<std::size_t, 2> first{}, last{};  ///< cells along each axis, both included
    std::size_t candidate = 0;
  };
  std::vector<Cut> cuts{};  ///< as VersionTable::tests
  std::vector<Region> regions{};
  double excess = 0;  ///< the sum over all cells
};

/// The tree with the least sum of excess and `price` for each region, of trees with `most` regions at most:
/// found by trying all (dynamic programming over rectangles). Ties: fewer regions, then the first candidate
/// and the first cut.
RegionTree best_tree(const CellGrid&, int most, double price);

}  // namespace fuse::schedule
