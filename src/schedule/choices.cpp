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

Choices nest_choices(std::vector<Split> splits) {
  const auto units = [&](char dim, Level level) {
    return static_cast<int>(std::min<std::int64_t>(1 << 10, units_of(splits, dim, level)));
  };
  std::int64_t warps = 1, vector = 1;
  for (const char dim : {'r', 'c', 'y', 'x'}) {
    warps *= units(dim, Level::warp);
    vector *= units(dim, Level::vector);
  }
  constexpr std::int64_t most = 1 << 20;  // more than any device takes
  Choices choices{.mapping = Mapping::nest, .block_threads = static_cast<int>(std::min(most, 32 * warps))};
  choices.cluster = units_of(splits, 'c', Level::cluster) > 1;
  choices.parts = static_cast<int>(
      std::min(most, units_of(splits, 'c', Level::grid) * units_of(splits, 'c', Level::cluster)));
  if (choices.parts == 1)
    choices.parts = static_cast<int>(std::min(most, units_of(splits, 'r', Level::grid)));
  choices.vector = static_cast<int>(std::min(most, vector));
  choices.splits = std::move(splits);
  return choices;
}

bool walks_tiles(const Choices& choices) {
  if (choices.mapping != Mapping::nest) return choices.mapping == Mapping::tile;
  return !choices.splits.empty() && choices.splits[0].dim == 't';
}

bool splits_rows(const Choices& choices) {
  if (choices.mapping != Mapping::nest) return choices.mapping == Mapping::split;
  return units_of(choices.splits, 'c', Level::grid) * units_of(choices.splits, 'c', Level::cluster) > 1;
}

int rows_at_once(const Choices& choices) {
  if (choices.mapping == Mapping::nest)
    return static_cast<int>(units_of(choices.splits, 'r', Level::warp) *
                            units_of(choices.splits, 'r', Level::lane)) *
           rows_side_by_side(choices);
  return choices.mapping == Mapping::row_warp ? choices.block_threads / choices.lanes : 1;
}

int rows_side_by_side(const Choices& choices) {
  return static_cast<int>(units_of(choices.splits, 'r', Level::vector));
}

std::int64_t step_elements(const Choices& choices) {
  if (choices.mapping == Mapping::nest) {
    std::int64_t elements = 1;
    for (const Level level : {Level::grid, Level::cluster, Level::warp, Level::lane, Level::vector})
      elements *= units_of(choices.splits, 'c', level);
    return elements;
  }
  std::int64_t threads = choices.block_threads;
  if (choices.mapping == Mapping::row_warp) threads = choices.lanes;
  if (choices.mapping == Mapping::column_tile) threads = choices.block_threads / choices.lanes;
  if (choices.mapping == Mapping::split) threads *= choices.parts;
  return threads * choices.vector;
}

std::int64_t row_trips(const Dim& reduced, const Choices& choices) {
  const std::int64_t most = reduced.max();
  if (most / 8 > reduced.hint()) return 0;
  const std::int64_t at_once = step_elements(choices);
  const bool nested = choices.mapping == Mapping::nest;
  const std::int64_t vector = nested ? units_of(choices.splits, 'c', Level::vector) : choices.vector;
  return (most + at_once - 1) / at_once * vector;
}

}  // namespace fuse::schedule
