// SPDX-License-Identifier: Apache-2.0
#include "fuzz/random_choices.hpp"

#include <algorithm>
#include <utility>

#include "schedule/default_choices.hpp"
#include "schedule/online_sums.hpp"
#include "schedule/paper_choices.hpp"
#include "schedule/schedule.hpp"
#include "schedule/staged.hpp"
#include "schedule/transposed.hpp"
#include "schedule/vector_width.hpp"

namespace fuse::fuzz {
namespace {

schedule::Choices random_choices(const ir::Graph& graph, const schedule::Segment& segment,
                                 const Target& target, Random& random) {
  using schedule::Mapping;
  schedule::Choices choices;
  if (const auto rows = schedule::across_rows(graph, segment); rows && random.between(0, 2) > 0) {
    choices = random_choices(graph, *rows, target, random);
    choices.across = true;
    if (columns_fit(graph, *rows, choices)) return choices;
    choices = {};
  }
  const std::int64_t most = target.max_threads_per_block / 32;
  choices.block_threads = static_cast<int>(32 * random.between(1, std::min<std::int64_t>(most, 16)));
  const ir::Relation relation = info(graph[dominant(segment)].op).relation;
  if (relation == ir::Relation::scan)
    choices.mapping = random.pick({Mapping::scan_warp, Mapping::scan_thread});
  if (relation != ir::Relation::scan && !segment.in_place && random.between(0, 5) == 0)
    choices.blocks = static_cast<int>(random.between(1, 2 * target.sms));
  const int widest = schedule::widest_vector(graph, segment);
  const int vector = static_cast<int>(random.pick({1, 2, 4, 8}));
  if (relation != ir::Relation::scan) choices.vector = std::min(vector, widest);
  if (relation != ir::Relation::reduce && relation != ir::Relation::scan &&
      schedule::transposed(graph, segment) && random.between(0, 2) > 0) {
    choices.mapping = Mapping::tile;
    choices.vector =
        std::min(vector, schedule::tile_vector(graph, segment, *schedule::transposed(graph, segment)));
    if (shared_bytes(graph, segment, choices) > target.shared_per_block) {
      choices.mapping = Mapping::element;
      choices.vector = 1;
    }
  }
  if (relation != ir::Relation::reduce) return choices;
  choices.mapping = random.pick({Mapping::row_warp, Mapping::row_block, Mapping::column_tile});
  if (segment.stages.size() > 1) choices.hold = random.pick({0, 4, 16, 64});
  if (!has_columns(segment) && random.between(0, 3) == 0) {
    choices.mapping = Mapping::split;
    choices.parts = static_cast<int>(random.pick({2, 3, 5, 9}));
  }
  if (has_columns(segment)) {
    choices.mapping = random.pick({Mapping::row_warp, Mapping::row_block});
    choices.parts = static_cast<int>(random.between(1, 9));
    // Rows that are too long for this: by the largest block, which the partition asked for.
    if (!columns_fit(graph, segment, choices)) {
      choices.mapping = Mapping::row_block;
      choices.vector = 1;
      choices.block_threads = target.max_threads_per_block;
    }
  }
  if (has_columns(segment) || choices.mapping == Mapping::split) {
    const bool joined = choices.parts > 1 && random.between(0, 1) > 0;
    choices.blocks = joined ? static_cast<int>(random.between(1, target.sms)) : 0;
    if (choices.mapping == Mapping::split && choices.blocks < choices.parts) choices.blocks = 0;
    const bool cluster = choices.mapping == Mapping::split && choices.parts <= target.max_cluster;
    if (cluster && choices.blocks == 0) choices.cluster = random.between(0, 1) > 0;
    if (choices.cluster && random.between(0, 1) == 0)
      choices.blocks = choices.parts * static_cast<int>(random.between(1, 4));
  }
  if (schedule::with_online_sums(graph, segment)) choices.online = random.between(0, 1) > 0;
  if (choices.mapping == Mapping::column_tile) choices.vector = 1;
  const bool by_rows = choices.mapping == Mapping::row_warp || choices.mapping == Mapping::row_block;
  if (segment.stages.size() > 1 && (by_rows || choices.cluster) && !has_columns(segment) &&
      random.between(0, 2) == 0) {
    const int step = choices.vector * (choices.cluster ? choices.block_threads : 1);
    choices.hold = 0;
    choices.shared_hold = step * static_cast<int>(random.pick({1, 2, 5, 32}));
  }
  const std::vector<schedule::Held> loaded = schedule::loaded_values(graph, segment);
  const bool fills_registers = std::all_of(loaded.begin(), loaded.end(), [&](const schedule::Held& held) {
    return static_cast<std::size_t>(choices.vector) * size_of(graph[held.node].type.dtype) % 4 == 0;
  });
  if (choices.hold > 0 && fills_registers) choices.packed = random.between(0, 1) > 0;
  const bool lanes = choices.mapping == Mapping::row_warp || choices.mapping == Mapping::column_tile;
  if (lanes && !has_columns(segment)) choices.lanes = static_cast<int>(random.pick({8, 16, 32, 32}));
  while (shared_bytes(graph, segment, choices) > target.shared_per_block) {
    choices.block_threads = choices.block_threads / 64 * 32;
    if (choices.cluster) choices.shared_hold = 0;
  }
  return choices;
}

}  // namespace

schedule::KernelChoices random_choices(const ir::Graph& graph, const schedule::Piece& piece,
                                       const Target& target, Random& random) {
  if (piece.phases.size() == 1) return {{random_choices(graph, piece.phases[0], target, random)}};
  // What fits phases of one kernel is hard to draw: the scheduler knows two ways.
  const auto own = schedule::default_choices(graph, piece, target);
  const auto printed = schedule::paper_choices(graph, piece, target);
  return own && (!printed || random.between(0, 1) > 0) ? *own : printed.value();
}

schedule::Choices random_list(std::uint64_t seed, bool tiles) {
  using schedule::Level;
  Random random(seed);
  std::vector<schedule::Split> splits;
  const auto add = [&](char dim, Level level, double chance, std::initializer_list<int> extents) {
    if (random.chance(chance)) splits.push_back({dim, level, random.pick(extents)});
  };
  if (tiles && random.chance(0.7)) {
    add('t', Level::serial, 0.5, {0});
    add('t', Level::grid, 0.9, {0, 2, 7});
    add('y', Level::serial, 0.9, {0});
    add('y', Level::warp, 0.7, {2, 3, 8});
    add('x', Level::lane, 1, {32, 32, 16});
    add('x', Level::vector, 0.3, {2, 4});
  } else {
    const int lanes = random.pick({1, 2, 4, 8, 16, 32});
    const bool turns = random.chance(0.5);
    if (turns) splits.push_back({'r', Level::serial, 0});
    add('r', Level::grid, turns ? 0.7 : 0.97, {turns ? 5 : 0, turns ? 2 : 0, 0});
    add('r', Level::warp, 0.4, {2, 3, 4});
    add('c', Level::serial, 0.93, {0});
    add('c', Level::grid, 0.25, {2, 3, 4});
    add('c', Level::cluster, 0.12, {2, 3, 4});
    add('c', Level::warp, 0.4, {2, 3, 5});
    const bool rows_first = random.chance(0.5);
    if (rows_first && lanes > 1) splits.push_back({'r', Level::lane, lanes});
    if (lanes < 32) splits.push_back({'c', Level::lane, 32 / lanes});
    if (!rows_first && lanes > 1) splits.push_back({'r', Level::lane, lanes});
    add(random.pick({'r', 'c', 'c'}), Level::vector, 0.3, {2, 4, 8});
  }
  // Now and then anything at all.
  if (random.chance(0.1) && splits.size() > 1) std::swap(splits[0], splits[random.below(splits.size())]);
  if (random.chance(0.1)) splits[random.below(splits.size())].extent = random.between(0, 33);
  schedule::Choices choices = schedule::nest_choices(std::move(splits));
  if (random.chance(0.15)) choices.blocks = static_cast<int>(random.between(1, 12));
  if (random.chance(0.25)) choices.hold = random.pick({4, 16, 64});
  if (choices.hold > 0) choices.packed = random.chance(0.3);
  if (choices.hold == 0 && random.chance(0.12)) choices.shared_hold = random.pick({8, 24, 96, 192});
  choices.online = random.chance(0.08);
  choices.across = random.chance(0.08);
  return choices;
}

std::optional<schedule::KernelChoices> random_nest(const ir::Graph& graph, const schedule::Piece& piece,
                                                   const Target& target, Random& random) {
  constexpr int tries = 12;
  if (piece.phases.size() > 1) return std::nullopt;
  const ir::Relation relation = info(graph[dominant(piece.phases[0])].op).relation;
  const bool loops = relation == ir::Relation::reduce || relation == ir::Relation::scan;
  const bool tiles = !loops && schedule::transposed(graph, piece.phases[0]).has_value();
  for (int i = 0; i < tries; ++i) {
    schedule::KernelChoices choices{{random_list(random.bits(), tiles)}};
    if (misfit(graph, piece, choices, target).empty()) return choices;
  }
  return std::nullopt;
}

schedule::PartitionOptions random_partition(Random random) {
  using schedule::Baseline, schedule::RuleSet;
  schedule::PartitionOptions options;
  options.groups.rules = random.pick({RuleSet::fuse, RuleSet::fuse, RuleSet::apollo});
  options.groups.layers = random.pick<std::uint8_t>({1, 3, schedule::all_layers, schedule::all_layers});
  options.groups.max_inputs = random.pick({3, 8, 48, 48});
  options.baseline = random.pick({Baseline::off, Baseline::off, Baseline::off, Baseline::off, Baseline::xla,
                                  Baseline::tvm, Baseline::none});
  options.stitch = random.between(0, 3) > 0;
  using Join = schedule::PartitionOptions::Join;
  options.join = random.pick({Join::never, Join::gain, Join::always, Join::always});
  if (random.between(0, 5) == 0) options.schemes = schedule::SchemeRules::paper;
  return options;
}

}  // namespace fuse::fuzz
