// The tree of cuts with the least excess, against all trees. SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/region_tree.hpp"

#include <algorithm>
#include <limits>
#include <random>

#include "support/catch.hpp"

using namespace fuse::schedule;  // NOLINT

namespace {

/// The least excess of a rectangle with so many regions at most, by trying all trees.
double brute(const CellGrid& grid, const RegionTree::Region& region, int regions) {
  double least = std::numeric_limits<double>::infinity();
  for (const std::vector<double>& excess : grid.excess) {
    double sum = 0;
    for (std::size_t i = region.first[0]; i <= region.last[0]; ++i)
      for (std::size_t j = region.first[1]; j <= region.last[1]; ++j) sum += excess[i * grid.cells[1] + j];
    least = std::min(least, sum);
  }
  for (std::size_t axis = 0; axis < 2; ++axis) {
    for (std::size_t last = region.first[axis]; last < region.last[axis]; ++last) {
      RegionTree::Region yes = region, no = region;
      yes.last[axis] = last;
      no.first[axis] = last + 1;
      for (int left = 1; left < regions; ++left)
        least = std::min(least, brute(grid, yes, left) + brute(grid, no, regions - left));
    }
  }
  return least;
}

/// The sum over the regions that the tree has, each cell once.
double sum_of(const CellGrid& grid, const RegionTree& tree) {
  double sum = 0;
  std::vector<int> seen(grid.cells[0] * grid.cells[1]);
  for (const RegionTree::Region& region : tree.regions) {
    for (std::size_t i = region.first[0]; i <= region.last[0]; ++i) {
      for (std::size_t j = region.first[1]; j <= region.last[1]; ++j) {
        ++seen[i * grid.cells[1] + j];
        sum += grid.excess[region.candidate][i * grid.cells[1] + j];
      }
    }
  }
  CHECK(std::all_of(seen.begin(), seen.end(), [](int times) { return times == 1; }));
  return sum;
}

/// Walks the cuts as a table would, and compares where they lead with the regions.
void check_cuts(const CellGrid& grid, const RegionTree& tree) {
  for (std::size_t i = 0; i < grid.cells[0]; ++i) {
    for (std::size_t j = 0; j < grid.cells[1]; ++j) {
      VersionTable::Branch at{tree.cuts.empty(), 0};
      while (!at.ends) {
        const RegionTree::Cut& cut = tree.cuts.at(at.to);
        at = (cut.axis == 0 ? i : j) <= cut.last ? cut.yes : cut.no;
      }
      const RegionTree::Region& region = tree.regions.at(at.to);
      CHECK((region.first[0] <= i && i <= region.last[0] && region.first[1] <= j && j <= region.last[1]));
    }
  }
}

}  // namespace

TEST_CASE("versions: regions of a row of cells", "[versions]") {
  const CellGrid grid{.cells = {1, 4}, .excess = {{0, 0, 1, 2}, {3, 1, 0, 0}}};
  const RegionTree two = best_tree(grid, 2, 0.1);
  REQUIRE(two.regions.size() == 2);
  CHECK(two.excess == 0);
  CHECK(two.cuts[0].axis == 1);
  CHECK(two.cuts[0].last == 1);
  CHECK(two.regions[0].candidate == 0);
  CHECK(two.regions[1].candidate == 1);
  CHECK(best_tree(grid, 1, 0).regions.size() == 1);
  CHECK(best_tree(grid, 8, 0).regions.size() == 2);    // more gain nothing
  CHECK(best_tree(grid, 8, 3.5).regions.size() == 1);  // a second one gains 3
  const RegionTree one = best_tree(grid, 8, 3.5);
  CHECK(one.excess == 3);
  CHECK(one.cuts.empty());
}

TEST_CASE("versions: a cut that gains nothing alone is found", "[versions]") {
  // Each corner has a candidate of its own: only both cuts together help.
  const CellGrid grid{.cells = {2, 2}, .excess = {{0, 1, 1, 0}, {1, 0, 0, 1}}};
  CHECK(best_tree(grid, 1, 0.01).excess == 2);
  CHECK(best_tree(grid, 2, 0.01).excess == 2);
  const RegionTree four = best_tree(grid, 4, 0.01);
  CHECK(four.excess == 0);
  CHECK(four.regions.size() == 4);
}

TEST_CASE("versions: the tree of cuts is the best of all", "[versions]") {
  const unsigned seed = 340;
  INFO("seed " << seed);
  std::mt19937 random(seed);
  for (int trial = 0; trial < 60; ++trial) {
    const auto draw = [&](int most) {
      return static_cast<std::size_t>(1 + random() % static_cast<unsigned>(most));
    };
    CellGrid grid{.cells = {draw(4), draw(4)}};
    const std::size_t cells = grid.cells[0] * grid.cells[1];
    grid.excess.resize(draw(4), std::vector<double>(cells));
    for (std::size_t cell = 0; cell < cells; ++cell) {
      double best = std::numeric_limits<double>::infinity();
      for (std::vector<double>& each : grid.excess) {
        each[cell] = static_cast<double>(random() % 8) / 4;
        best = std::min(best, each[cell]);
      }
      for (std::vector<double>& each : grid.excess) each[cell] -= best;
    }
    const RegionTree::Region all{{0, 0}, {grid.cells[0] - 1, grid.cells[1] - 1}, 0};
    for (const int most : {1, 2, 4}) {
      const RegionTree tree = best_tree(grid, most, 0);
      CHECK(tree.excess == Approx(brute(grid, all, most)).margin(1e-9));
      CHECK(sum_of(grid, tree) == Approx(tree.excess).margin(1e-9));
      CHECK(tree.regions.size() <= static_cast<std::size_t>(most));
      check_cuts(grid, tree);
    }
  }
}
