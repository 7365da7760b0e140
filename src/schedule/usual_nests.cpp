// SPDX-License-Identifier: Apache-2.0
#include "schedule/usual_nests.hpp"

#include <algorithm>
#include <optional>
#include <utility>

#include "schedule/nest_rules.hpp"

namespace fuse::schedule {
namespace {

constexpr int warp = 32;

/// A list under construction, without splits of one unit.
class List {
 public:
  List& rest(char dim, Level level) {
    splits_.push_back({dim, level});
    return *this;
  }
  List& add(char dim, Level level, int units) {
    if (units > 1) splits_.push_back({dim, level, units});
    return *this;
  }
  std::vector<Split> take() { return std::move(splits_); }

 private:
  std::vector<Split> splits_;
};

}  // namespace

std::vector<Split> nest_of_elements(int threads, int vector) {
  return List()
      .rest('r', Level::grid)
      .add('r', Level::warp, threads / warp)
      .add('r', Level::lane, warp)
      .add('r', Level::vector, vector)
      .take();
}

std::vector<Split> nest_of_tiles(int threads, int vector) {
  return List()
      .rest('t', Level::grid)
      .rest('y', Level::serial)
      .add('y', Level::warp, threads / warp)
      .add('x', Level::lane, warp)
      .add('x', Level::vector, vector)
      .take();
}

std::vector<Split> nest_of_lanes(int threads, int lanes, int vector) {
  return List()
      .rest('r', Level::grid)
      .add('r', Level::warp, threads / warp)
      .rest('c', Level::serial)
      .add('r', Level::lane, warp / lanes)
      .add('c', Level::lane, lanes)
      .add('c', Level::vector, vector)
      .take();
}

std::vector<Split> nest_of_blocks(int threads, int vector) { return nest_of_parts(threads, 1, vector); }

std::vector<Split> nest_of_parts(int threads, int parts, int vector, Level blocks) {
  return List()
      .rest('r', Level::grid)
      .rest('c', Level::serial)
      .add('c', blocks, parts)
      .add('c', Level::warp, threads / warp)
      .add('c', Level::lane, warp)
      .add('c', Level::vector, vector)
      .take();
}

std::vector<Split> nest_of_columns(int threads, int columns) {
  return List()
      .rest('r', Level::grid)
      .rest('c', Level::serial)
      .add('c', Level::warp, threads / warp)
      .add('c', Level::lane, warp / columns)
      .add('r', Level::lane, columns)
      .take();
}

std::vector<Split> nest_of_scans_by_warps(int threads) { return nest_of_lanes(threads); }

std::vector<Split> nest_of_scans_by_threads(int threads) {
  return List()
      .rest('r', Level::grid)
      .add('r', Level::warp, threads / warp)
      .rest('c', Level::serial)
      .add('r', Level::lane, warp)
      .take();
}

std::vector<Split> in_turns(std::vector<Split> splits, int blocks) {
  const char outer = splits.front().dim;
  splits.front() = {outer, Level::serial};
  if (blocks > 1) splits.insert(splits.begin() + 1, {outer, Level::grid, blocks});
  return splits;
}

std::vector<Split> with_units(std::vector<Split> splits, char dim, Level level, std::int64_t units) {
  const auto same = [&](const Split& each) {
    return each.dim == dim && each.level == level && each.extent > 0;
  };
  if (units <= 1) {
    std::erase_if(splits, same);
    return splits;
  }
  if (const auto found = std::find_if(splits.begin(), splits.end(), same); found != splits.end()) {
    found->extent = units;
    return splits;
  }
  const Split added{dim, level, units};
  const std::optional<int> place = place_of(added);
  const auto behind = std::find_if(splits.begin(), splits.end(), [&](const Split& each) {
    return place_of(each) > place || (place_of(each) == place && each.dim < dim);
  });
  splits.insert(behind, added);
  return splits;
}

}  // namespace fuse::schedule
