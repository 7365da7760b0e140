// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/usual_nests.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace fuse::schedule {
namespace {

constexpr int warp = 32;

}  // namespace

std::vector<Split> nest_of_elements(int threads, int vector) {
  return without_ones({{'r', Level::grid},
                       {'r', Level::warp, threads / warp},
                       {'r', Level::lane, warp},
                       {'r', Level::vector, vector}});
}

std::vector<Split> nest_of_tiles(int threads, int vector) {
  return without_ones({{'t', Level::grid},
                       {'y', Level::serial},
                       {'y', Level::warp, threads / warp},
                       {'x', Level::lane, warp},
                       {'x', Level::vector, vector}});
}

std::vector<Split> nest_of_lanes(int threads, int lanes, int vector) {
  return without_ones({{'r', Level::grid},
                       {'r', Level::warp, threads / warp},
                       {'c', Level::serial},
                       {'r', Level::lane, warp / lanes},
                       {'c', Level::lane, lanes},
                       {'c', Level::vector, vector}});
}

std::vector<Split> nest_of_blocks(int threads, int vector) { return nest_of_shared_rows(threads, 1, vector); }

std::vector<Split> nest_of_shared_rows(int threads, int blocks_per_row, int vector, Level blocks) {
  return without_ones({{'r', Level::grid},
                       {'c', Level::serial},
                       {'c', blocks, blocks_per_row},
                       {'c', Level::warp, threads / warp},
                       {'c', Level::lane, warp},
                       {'c', Level::vector, vector}});
}

std::vector<Split> nest_of_columns(int threads, int columns) {
  return without_ones({{'r', Level::grid},
                       {'c', Level::serial},
                       {'c', Level::warp, threads / warp},
                       {'c', Level::lane, warp / columns},
                       {'r', Level::lane, columns}});
}

std::vector<Split> nest_of_scans_by_warps(int threads) { return nest_of_lanes(threads); }

std::vector<Split> nest_of_scans_by_threads(int threads) {
  return without_ones({{'r', Level::grid},
                       {'r', Level::warp, threads / warp},
                       {'c', Level::serial},
                       {'r', Level::lane, warp}});
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
  const std::optional<int> position = order_of(added);
  const auto behind = std::find_if(splits.begin(), splits.end(), [&](const Split& each) {
    return order_of(each) > position || (order_of(each) == position && each.dim < dim);
  });
  splits.insert(behind, added);
  return splits;
}

}  // namespace fuse::schedule
