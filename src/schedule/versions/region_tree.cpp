// SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/region_tree.hpp"

#include <algorithm>
#include <limits>

namespace fuse::schedule {
namespace {

using Region = RegionTree::Region;

class TreeFinder {
 public:
  TreeFinder(const CellGrid& grid, int most)
      : grid_(grid), most_(static_cast<std::size_t>(std::max(1, most))) {
    for (std::size_t axis = 0; axis < 2; ++axis) spans_[axis] = grid.cells[axis] * (grid.cells[axis] + 1) / 2;
    leaves_.resize(spans_[0] * spans_[1]);
    least_.assign(most_, std::vector<double>(leaves_.size(), std::numeric_limits<double>::infinity()));
    add_up();
    fill();
  }

  RegionTree run(double price) {
    const Region all{.first = {0, 0}, .last = {grid_.cells[0] - 1, grid_.cells[1] - 1}};
    std::size_t regions = 1;
    for (std::size_t k = 2; k <= most_; ++k) {
      constexpr double noise = 1e-9;
      if (total(k, all, price) < total(regions, all, price) - noise) regions = k;
    }
    RegionTree tree{.excess = least_[regions - 1][index(all)]};
    build(all, regions, tree);
    return tree;
  }

 private:
  double total(std::size_t regions, const Region& all, double price) const {
    return least_[regions - 1][index(all)] + price * static_cast<double>(regions);
  }

  /// The spans [first, last] of an axis are numbered by their last cell, then by their first.
  std::size_t index(const Region& region) const {
    const auto span = [&](std::size_t axis) {
      return region.last[axis] * (region.last[axis] + 1) / 2 + region.first[axis];
    };
    return span(0) * spans_[1] + span(1);
  }

  /// Sums of each candidate over all rectangles that begin in the first cell.
  void add_up() {
    const auto [rows, columns] = grid_.cells;
    for (const std::vector<double>& excess : grid_.excess) {
      std::vector<double>& sum = sums_.emplace_back((rows + 1) * (columns + 1), 0.0);
      for (std::size_t i = 0; i < rows; ++i) {
        for (std::size_t j = 0; j < columns; ++j) {
          sum[(i + 1) * (columns + 1) + j + 1] = excess[i * columns + j] + sum[i * (columns + 1) + j + 1] +
                                                 sum[(i + 1) * (columns + 1) + j] -
                                                 sum[i * (columns + 1) + j];
        }
      }
    }
  }

  double sum_of(const std::vector<double>& sums, const Region& region) const {
    const std::size_t width = grid_.cells[1] + 1;
    const auto upto = [&](std::size_t i, std::size_t j) { return sums[i * width + j]; };
    const auto [i, j] = region.first;
    const std::size_t k = region.last[0] + 1, l = region.last[1] + 1;
    return std::max(0.0, upto(k, l) - upto(i, l) - upto(k, j) + upto(i, j));
  }

  template <class Visit>
  void for_each_region(const Visit& visit) const {
    Region region;
    for (std::size_t high = 0; high < grid_.cells[0]; ++high) {    // longer ones come later, so that
      for (std::size_t wide = 0; wide < grid_.cells[1]; ++wide) {  // parts come before the whole
        for (region.first[0] = 0; region.first[0] + high < grid_.cells[0]; ++region.first[0]) {
          for (region.first[1] = 0; region.first[1] + wide < grid_.cells[1]; ++region.first[1]) {
            region.last = {region.first[0] + high, region.first[1] + wide};
            visit(region);
          }
        }
      }
    }
  }

  /// Calls `visit` for each cut of a region, with its sides.
  template <class Visit>
  static void for_each_cut(const Region& region, const Visit& visit) {
    for (std::size_t axis = 0; axis < 2; ++axis) {
      for (std::size_t last = region.first[axis]; last < region.last[axis]; ++last) {
        Region yes = region, no = region;
        yes.last[axis] = last;
        no.first[axis] = last + 1;
        visit(axis, last, yes, no);
      }
    }
  }

  void fill() {
    for_each_region([&](Region region) {
      double least = std::numeric_limits<double>::infinity();
      for (std::size_t candidate = 0; candidate < sums_.size(); ++candidate) {
        const double sum = sum_of(sums_[candidate], region);
        if (sum < least) least = sum, region.candidate = candidate;
      }
      const std::size_t at = index(region);
      leaves_[at] = region.candidate;
      least_[0][at] = least;
      for (std::size_t k = 1; k < most_; ++k) least_[k][at] = least_[k - 1][at];
      for_each_cut(region, [&](std::size_t, std::size_t, const Region& yes, const Region& no) {
        const std::size_t a = index(yes), b = index(no);
        for (std::size_t left = 0; left + 1 < most_; ++left) {
          for (std::size_t right = 0; left + right + 1 < most_; ++right) {
            double& best = least_[left + right + 1][at];
            best = std::min(best, least_[left][a] + least_[right][b]);
          }
        }
      });
      for (std::size_t k = 1; k < most_; ++k) least_[k][at] = std::min(least_[k][at], least_[k - 1][at]);
    });
  }

  /// The tree of a region, with at most so many regions; its cuts and regions stand behind those there are.
  VersionTable::Branch build(Region region, std::size_t regions, RegionTree& tree) {
    const std::size_t at = index(region);
    while (regions > 1 && least_[regions - 2][at] <= least_[regions - 1][at]) --regions;
    if (regions == 1) {
      region.candidate = leaves_[at];
      tree.regions.push_back(region);
      return {.ends = true, .to = static_cast<std::uint32_t>(tree.regions.size() - 1)};
    }
    struct Found {
      double sum = std::numeric_limits<double>::infinity();
      std::size_t axis = 0, last = 0, left = 0, right = 0;
      Region yes{}, no{};
    } found;
    for_each_cut(region, [&](std::size_t axis, std::size_t last, const Region& yes, const Region& no) {
      for (std::size_t left = 0; left + 1 < regions; ++left) {
        const std::size_t right = regions - 2 - left;
        const double sum = least_[left][index(yes)] + least_[right][index(no)];
        if (sum < found.sum) found = {sum, axis, last, left, right, yes, no};
      }
    });
    const std::size_t cut = tree.cuts.size();
    tree.cuts.push_back({.axis = found.axis, .last = found.last});
    const VersionTable::Branch yes = build(found.yes, found.left + 1, tree);
    const VersionTable::Branch no = build(found.no, found.right + 1, tree);
    tree.cuts[cut].yes = yes;
    tree.cuts[cut].no = no;
    return {.ends = false, .to = static_cast<std::uint32_t>(cut)};
  }

  const CellGrid& grid_;
  const std::size_t most_;
  std::array<std::size_t, 2> spans_{};
  std::vector<std::vector<double>> sums_;   // per candidate
  std::vector<std::size_t> leaves_;         // per rectangle, its best candidate
  std::vector<std::vector<double>> least_;  // by number of regions less 1, and rectangle
};

}  // namespace

RegionTree best_tree(const CellGrid& grid, int most, double price) {
  return TreeFinder(grid, most).run(price);
}

}  // namespace fuse::schedule
