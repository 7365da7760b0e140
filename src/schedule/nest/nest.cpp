// SPDX-License-Identifier: Apache-2.0
#include "schedule/nest/nest.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <charconv>
#include <iterator>

namespace fuse::schedule {
namespace {

constexpr std::int64_t lanes_of_warp = 32;

/// The positions of a nest of rows and of one of tiles, from the outermost to the innermost: each has at most
/// one split, except the position of lanes, which has one per dim, in any order.
struct SplitOrder {
  int number;
  char dim;
  Level level;
};
constexpr SplitOrder positions[] = {
    {0, 'r', Level::serial}, {1, 'r', Level::grid},    {2, 'r', Level::warp},   {3, 'c', Level::serial},
    {4, 'c', Level::grid},   {4, 'c', Level::cluster}, {5, 'c', Level::warp},   {6, 'r', Level::lane},
    {6, 'c', Level::lane},   {7, 'r', Level::vector},  {7, 'c', Level::vector}, {0, 't', Level::serial},
    {1, 't', Level::grid},   {3, 'y', Level::serial},  {5, 'y', Level::warp},   {6, 'x', Level::lane},
    {7, 'x', Level::vector},
};

/// What is the same for all splits of a level.
struct LevelRow {
  std::string_view name;
  bool takes_rest;  ///< its number of units may depend on a symbol
};

constexpr LevelRow level_rows[] = {{"grid", true},  {"cluster", false}, {"warp", false},
                                   {"lane", false}, {"serial", true},   {"vector", false}};

const LevelRow& row_of(Level level) { return level_rows[static_cast<std::size_t>(level)]; }

const Dim& extent_of(const Nest& nest, char dim) {
  return std::find_if(nest.dims.begin(), nest.dims.end(), [&](const auto& each) { return each.name == dim; })
      ->extent;
}

/// The product of the fixed splits of a dim.
std::int64_t fixed(const Nest& nest, char dim) {
  std::int64_t product = 1;
  for (const Split& split : nest.splits) {
    if (split.dim == dim && split.extent > 0) product *= split.extent;
  }
  return product;
}

Dim all_units_of(const Nest& nest, const Split& split) {
  if (split.extent > 0) return split.extent;
  const std::int64_t others = fixed(nest, split.dim);
  const Dim& extent = extent_of(nest, split.dim);
  return others == 1 ? extent : ceil_div(extent, others);
}

/// What is wrong with the splits of one dim.
std::string defect_of_dim(const Nest& nest, const Nest::LoopDim& dim) {
  int rests = 0;
  const Split* behind = nullptr;  // the last one so far
  for (const Split& split : nest.splits) {
    if (split.dim != dim.name) continue;
    if (behind && behind->level == Level::vector)
      return fmt::format("{} stands after a vector", to_string(split));
    if (split.extent == 0) ++rests;
    behind = &split;
  }
  if (rests > 1) return fmt::format("{} splits take the rest of {}", rests, dim.name);
  const std::int64_t all = fixed(nest, dim.name);
  if (rests == 0 && !proven_le(dim.extent, all))
    return fmt::format("the splits of {} have {} units for {} elements", dim.name, all,
                       dim.extent.to_string());
  return "";
}

}  // namespace

std::vector<std::string> level_names() {
  std::vector<std::string> names;
  for (const LevelRow& row : level_rows) names.emplace_back(row.name);
  return names;
}

std::string_view to_string(Level level) { return row_of(level).name; }

std::string to_string(const Split& split) {
  return fmt::format("{}:{}{}", split.dim, to_string(split.level),
                     split.extent > 0 ? std::to_string(split.extent) : "");
}

std::string to_string(const std::vector<Split>& splits) {
  std::string text;
  for (const Split& split : splits) text += (text.empty() ? "" : " ") + to_string(split);
  return text;
}

std::string to_string(const Nest& nest) { return to_string(nest.splits); }

std::optional<std::vector<Split>> parse_splits(std::string_view text) {
  std::vector<Split> splits;
  while (!text.empty()) {
    const std::string_view word = text.substr(0, text.find_first_of(" \t"));
    text.remove_prefix(std::min(text.size(), word.size() + 1));
    if (word.empty()) continue;
    if (word.size() < 3 || word[1] != ':') return std::nullopt;
    const std::size_t digits = std::min(word.size(), word.find_first_of("0123456789"));
    const std::string_view name = word.substr(2, digits - 2), number = word.substr(digits);
    const auto row = std::find_if(std::begin(level_rows), std::end(level_rows),
                                  [&](const LevelRow& each) { return each.name == name; });
    Split split{.dim = word[0]};
    const auto [end, error] = std::from_chars(number.data(), number.data() + number.size(), split.extent);
    const bool is_number = error == std::errc() && end == number.data() + number.size() && split.extent > 0;
    if (row == std::end(level_rows) || (!number.empty() && !is_number)) return std::nullopt;
    split.level = static_cast<Level>(row - std::begin(level_rows));
    splits.push_back(split);
  }
  return splits;
}

std::vector<Split> without_ones(std::vector<Split> splits) {
  std::erase_if(splits, [](const Split& split) { return split.extent == 1; });
  return splits;
}

char fastest_lane(const std::vector<Split>& splits) {
  const auto last = std::find_if(splits.rbegin(), splits.rend(),
                                 [](const Split& split) { return split.level == Level::lane; });
  return last == splits.rend() ? splits.front().dim : last->dim;
}

std::int64_t units_of(const std::vector<Split>& splits, char dim, Level level) {
  constexpr std::int64_t most = std::int64_t{1} << 31;  // a nest has no more, and the product has to fit
  std::int64_t units = 1;
  for (const Split& split : splits) {
    const bool counts = split.dim == dim && split.level == level && split.extent > 0;
    if (counts) units = std::min(most, units * std::min(most, split.extent));
  }
  return units;
}

Dim units(const Nest& nest, Level level) {
  Dim product = 1;
  for (const Split& split : nest.splits) {
    if (split.level == level) product = product * all_units_of(nest, split);
  }
  return product;
}

Dim stride(const Nest& nest, std::size_t i) {
  Dim product = 1;
  for (std::size_t k = i + 1; k < nest.splits.size(); ++k) {
    if (nest.splits[k].dim == nest.splits[i].dim) product = product * all_units_of(nest, nest.splits[k]);
  }
  return product;
}

Nest without_turns(Nest nest) {
  if (nest.splits.empty() || nest.splits[0].level != Level::serial) return nest;
  nest.splits[0].level = Level::grid;
  const auto turn = nest.splits.begin() + 1;
  const bool taken =
      turn != nest.splits.end() && turn->dim == nest.splits[0].dim && turn->level == Level::grid;
  if (taken) nest.splits.erase(turn);
  return nest;
}

std::string defect_of(const Nest& nest) {
  for (const Split& split : nest.splits) {
    const auto is_its = [&](const Nest::LoopDim& dim) { return dim.name == split.dim; };
    if (std::count_if(nest.dims.begin(), nest.dims.end(), is_its) != 1)
      return fmt::format("{} splits no dim of the nest", to_string(split));
    if (split.extent < 0 || (split.extent == 0 && !row_of(split.level).takes_rest))
      return fmt::format("{} has no fixed number of units", to_string(split));
    const bool halves = split.level == Level::lane || split.level == Level::vector;
    if (halves && !std::has_single_bit(static_cast<std::uint64_t>(split.extent)))
      return fmt::format("{} is no power of two", to_string(split));
  }
  for (const Nest::LoopDim& dim : nest.dims) {
    if (const std::string defect = defect_of_dim(nest, dim); !defect.empty()) return defect;
  }
  const Dim lanes = units(nest, Level::lane);
  if (!lanes.is(lanes_of_warp))
    return fmt::format("the lanes of all splits are {}, and have to be 32", lanes.to_string());
  return "";
}

std::optional<int> order_of(const Split& split) {
  const auto* position = std::find_if(
      std::begin(positions), std::end(positions),
      [&](const SplitOrder& each) { return each.dim == split.dim && each.level == split.level; });
  return position == std::end(positions) ? std::nullopt : std::optional(position->number);
}

}  // namespace fuse::schedule
