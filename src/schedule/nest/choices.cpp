// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "base/divide_up.hpp"
#include "schedule/nest/usual_nests.hpp"

namespace fuse::schedule {

namespace {

/// The bound is more than any device takes, so a larger number is equally wrong.
int as_int(std::int64_t units) { return static_cast<int>(std::min<std::int64_t>(1 << 20, units)); }

/// The units of all dims at a level.
std::int64_t units_at(const std::vector<Split>& splits, Level level) {
  std::int64_t units = 1;
  for (const char dim : {'r', 'c', 'y', 'x'})
    units *= std::min<std::int64_t>(1 << 10, units_of(splits, dim, level));
  return units;
}

}  // namespace

int Choices::block_threads() const { return as_int(32 * units_at(splits, Level::warp)); }

int Choices::vector() const { return as_int(units_at(splits, Level::vector)); }

int Choices::blocks_per_row() const {
  const std::int64_t of_row = units_of(splits, 'c', Level::grid) * units_of(splits, 'c', Level::cluster);
  return as_int(of_row > 1 ? of_row : units_of(splits, 'r', Level::grid));
}

int Choices::cluster() const { return as_int(units_of(splits, 'c', Level::cluster)); }

Choices& Choices::set(char dim, Level level, std::int64_t units) {
  splits = with_units(std::move(splits), dim, level, units);
  return *this;
}

std::string Choices::to_string() const {
  std::string text = "nest = " + schedule::to_string(splits);
  if (blocks > 0) text += fmt::format(", blocks = {}", blocks);
  if (online_softmax) text += ", online_softmax";
  if (across) text += ", across";
  if (register_cache > 0) text += fmt::format(", register_cache = {}", register_cache);
  if (packed) text += ", packed";
  if (shared_cache > 0) text += fmt::format(", shared_cache = {}", shared_cache);
  if (accumulators > 1) text += fmt::format(", accumulators = {}", accumulators);
  if (ahead) text += ", ahead";
  if (invariants) text += ", invariants";
  if (columns_once) text += ", columns_once";
  if (registers > 0) text += fmt::format(", registers = {}", registers);
  return text;
}

std::string KernelChoices::to_string() const {
  if (phases.size() == 1) return phases[0].to_string();
  std::string text;
  if (blocks > 0) text = fmt::format("blocks = {}", blocks);
  if (slices > 0) text = fmt::format("slices = {}", slices);
  if (!tile.empty()) text = fmt::format("tile = {}", fmt::join(tile, " x "));
  for (const Choices& phase : phases)
    text += fmt::format("{}phase {{{}}}", text.empty() ? "" : ", ", phase.to_string());
  return text;
}

bool walks_tiles(const Choices& choices) { return !choices.splits.empty() && choices.splits[0].dim == 't'; }

bool walks_elements(const Choices& choices) {
  return std::find(choices.splits.begin(), choices.splits.end(), Split{'c', Level::serial}) !=
         choices.splits.end();
}

bool splits_rows(const Choices& choices) {
  return units_of(choices.splits, 'c', Level::grid) * units_of(choices.splits, 'c', Level::cluster) > 1;
}

bool warps_take_partials(const Choices& choices) {
  return splits_rows(choices) && units_of(choices.splits, 'c', Level::warp) > 1 &&
         choices.blocks_per_row() > units_of(choices.splits, 'c', Level::lane);
}

int rows_at_once(const Choices& choices) {
  std::int64_t rows = 1;
  for (const Level level : {Level::warp, Level::lane, Level::vector})
    rows *= units_of(choices.splits, 'r', level);
  return static_cast<int>(rows);
}

std::int64_t step_elements(const Choices& choices) {
  std::int64_t elements = 1;
  for (const Level level : {Level::grid, Level::cluster, Level::warp, Level::lane, Level::vector})
    elements *= units_of(choices.splits, 'c', level);
  return elements;
}

std::int64_t elements_per_thread(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most > std::numeric_limits<std::int32_t>::max() || most / 8 > reduced.hint()) return 0;
  return divide_up(most, step_elements(choices)) * units_of(choices.splits, 'c', Level::vector);
}

}  // namespace fuse::schedule
