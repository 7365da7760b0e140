// SPDX-License-Identifier: Apache-2.0
#include "schedule/choices.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace fuse::schedule {

std::string_view to_string(Mapping mapping) {
  switch (mapping) {
    case Mapping::element:
      return "element";
    case Mapping::tile:
      return "tile";
    case Mapping::row_warp:
      return "row_warp";
    case Mapping::row_block:
      return "row_block";
    case Mapping::column_tile:
      return "column_tile";
    case Mapping::split:
      return "split";
    case Mapping::scan_warp:
      return "scan_warp";
    case Mapping::scan_thread:
      return "scan_thread";
    case Mapping::nest:
      return "nest";
  }
  return "?";
}

std::string Choices::to_string() const {
  std::string text;
  if (mapping == Mapping::nest) {
    text = fmt::format("nest = {}", schedule::to_string(splits));
    if (blocks > 0) text += fmt::format(", blocks = {}", blocks);
  } else {
    text = fmt::format("mapping = {}, block = {}", schedule::to_string(mapping), block_threads);
    if (parts > 1) text += fmt::format(", parts = {}", parts);
    if (cluster) text += ", cluster";
    if (blocks > 0) text += fmt::format(", blocks = {}", blocks);
    if (vector > 1) text += fmt::format(", vector = {}", vector);
    if (lanes < 32) text += fmt::format(", lanes = {}", lanes);
  }
  if (online) text += ", online";
  if (across) text += ", across";
  if (hold > 0) text += fmt::format(", hold = {}", hold);
  if (packed) text += ", packed";
  if (shared_hold > 0) text += fmt::format(", shared_hold = {}", shared_hold);
  return text;
}

std::string KernelChoices::to_string() const {
  if (phases.size() == 1) return phases[0].to_string();
  std::string text = fmt::format("block = {}, blocks = {}", block_threads(), blocks);
  for (const Choices& phase : phases) text += fmt::format(", phase {{{}}}", phase.to_string());
  return text;
}

std::vector<Split> splits_of(const Choices& choices, bool columns) {
  if (choices.mapping == Mapping::nest) return choices.splits;
  std::vector<Split> splits;
  const auto add = [&](char dim, Level level, std::int64_t extent) {
    if (extent != 1) splits.push_back({dim, level, extent});
  };
  constexpr std::int64_t rest = 0;
  const bool tiles = choices.mapping == Mapping::tile, split = choices.mapping == Mapping::split;
  const std::int64_t warps = choices.block_threads / 32, lanes = choices.lanes;
  const char outer = tiles ? 't' : 'r';
  // Blocks that stay; those of rows that several blocks share without a cluster are another kernel's.
  const std::int64_t turns = columns                    ? choices.parts
                             : split && choices.cluster ? choices.blocks / choices.parts
                                                        : choices.blocks;
  if (columns || (choices.blocks > 0 && (!split || choices.cluster))) {
    add(outer, Level::serial, rest);
    add(outer, Level::grid, turns);
  } else {
    add(outer, Level::grid, rest);
  }
  switch (choices.mapping) {
    case Mapping::element:
      add('r', Level::warp, warps);
      add('r', Level::lane, 32);
      add('r', Level::vector, choices.vector);
      break;
    case Mapping::tile:
      add('y', Level::serial, rest);
      add('y', Level::warp, warps);
      add('x', Level::lane, 32);
      add('x', Level::vector, choices.vector);
      break;
    case Mapping::row_warp:
    case Mapping::scan_warp:
      add('r', Level::warp, warps);
      add('c', Level::serial, rest);
      add('r', Level::lane, 32 / lanes);
      add('c', Level::lane, lanes);
      add('c', Level::vector, choices.vector);
      break;
    case Mapping::scan_thread:
      add('r', Level::warp, warps);
      add('c', Level::serial, rest);
      add('r', Level::lane, 32);
      break;
    case Mapping::column_tile:
      add('c', Level::serial, rest);
      add('c', Level::warp, warps);
      add('c', Level::lane, 32 / lanes);
      add('r', Level::lane, lanes);
      break;
    case Mapping::row_block:
    case Mapping::split:
      add('c', Level::serial, rest);
      if (split) add('c', choices.cluster ? Level::cluster : Level::grid, choices.parts);
      add('c', Level::warp, warps);
      add('c', Level::lane, 32);
      add('c', Level::vector, choices.vector);
      break;
    case Mapping::nest:
      break;
  }
  return splits;
}

Choices nest_choices(std::vector<Split> splits, const Choices& beside) {
  constexpr std::int64_t most = 1 << 20;  // more than any device takes
  const auto bounded = [&](std::int64_t units) { return static_cast<int>(std::min(most, units)); };
  std::int64_t warps = 1, vector = 1;
  for (const char dim : {'r', 'c', 'y', 'x'}) {
    warps *= std::min<std::int64_t>(1 << 10, units_of(splits, dim, Level::warp));
    vector *= std::min<std::int64_t>(1 << 10, units_of(splits, dim, Level::vector));
  }
  Choices choices = beside;
  choices.mapping = Mapping::nest;
  choices.block_threads = bounded(32 * warps);
  choices.lanes = Choices{}.lanes;
  choices.cluster = units_of(splits, 'c', Level::cluster) > 1;
  choices.parts = bounded(units_of(splits, 'c', Level::grid) * units_of(splits, 'c', Level::cluster));
  if (choices.parts == 1) choices.parts = bounded(units_of(splits, 'r', Level::grid));
  choices.vector = bounded(vector);
  choices.splits = std::move(splits);
  return choices;
}

Choices as_nest(const Choices& choices, bool columns) {
  if (choices.mapping == Mapping::nest) return choices;
  Choices result = nest_choices(splits_of(choices, columns), choices);
  if (!columns && (!splits_rows(choices) || choices.cluster)) result.blocks = 0;  // turns, which are splits
  return result;
}

bool walks_tiles(const Choices& choices) {
  if (choices.mapping != Mapping::nest) return choices.mapping == Mapping::tile;
  return !choices.splits.empty() && choices.splits[0].dim == 't';
}

bool splits_rows(const Choices& choices) {
  if (choices.mapping != Mapping::nest) return choices.mapping == Mapping::split;
  return units_of(choices.splits, 'c', Level::grid) * units_of(choices.splits, 'c', Level::cluster) > 1;
}

bool warps_take_parts(const Choices& choices) {
  const std::vector<Split> splits = splits_of(choices);
  return splits_rows(choices) && units_of(splits, 'c', Level::warp) > 1 &&
         choices.parts > units_of(splits, 'c', Level::lane);
}

int rows_at_once(const Choices& choices) {
  const std::vector<Split> splits = splits_of(choices);
  std::int64_t rows = 1;
  for (const Level level : {Level::warp, Level::lane, Level::vector}) rows *= units_of(splits, 'r', level);
  return static_cast<int>(rows);
}

std::int64_t step_elements(const Choices& choices) {
  const std::vector<Split> splits = splits_of(choices);
  std::int64_t elements = 1;
  for (const Level level : {Level::grid, Level::cluster, Level::warp, Level::lane, Level::vector})
    elements *= units_of(splits, 'c', level);
  return elements;
}

std::int64_t row_trips(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most / 8 > reduced.hint()) return 0;
  const std::int64_t at_once = step_elements(choices);
  return (most + at_once - 1) / at_once * units_of(splits_of(choices), 'c', Level::vector);
}

}  // namespace fuse::schedule
