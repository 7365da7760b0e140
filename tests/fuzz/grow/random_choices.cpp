// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/random_choices.hpp"

#include <algorithm>
#include <utility>

#include "schedule/choosers/astitch_choices.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/mapping/costly_columns.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/regional/halo_tiles.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::fuzz {
namespace {

using schedule::Choices, schedule::Split;

/// By a thread for some elements, or a block for a tile of a transpose.
Choices random_elements(const ir::Graph& graph, const schedule::Phase& phase, int threads, int vector,
                        const Target& target, Random& random) {
  const bool stay = !phase.in_place && random.chance(0.16);
  const auto in_blocks = [&, blocks = static_cast<int>(random.between(1, 2 * target.sms))](
                             std::vector<Split> splits) -> Choices {
    return {.splits = stay ? in_turns(std::move(splits), blocks) : std::move(splits)};
  };
  if (const auto values = schedule::transposed(graph, phase); values && random.between(0, 2) > 0) {
    const int widest = schedule::tile_vector(graph, phase, *values);
    Choices tiles = in_blocks(schedule::nest_of_tiles(threads, std::min(vector, widest)));
    if (shared_bytes(graph, phase, tiles) <= target.shared_per_block) return tiles;
  }
  return in_blocks(
      schedule::nest_of_elements(threads, std::min(vector, schedule::widest_vector(graph, phase))));
}

/// Blocks that keep columns and take rows in turns.
Choices random_columns(const ir::Graph& graph, const schedule::Phase& phase, int threads, int vector,
                       const Target& target, Random& random) {
  const int parts = static_cast<int>(random.between(1, 9));
  const bool by_warps = random.chance(0.5);
  Choices choices{.splits = in_turns(by_warps ? schedule::nest_of_lanes(threads, 32, vector)
                                              : schedule::nest_of_blocks(threads, vector),
                                     parts)};
  // Rows that are too long for this: by the largest block, which the partition asked for.
  if (!columns_fit(graph, phase, choices, target))
    choices.splits = in_turns(schedule::nest_of_blocks(target.max_threads_per_block), parts);
  if (parts > 1 && random.chance(0.5)) choices.blocks = static_cast<int>(random.between(1, target.sms));
  return choices;
}

/// Several blocks share a row: from launch to launch, in one kernel, or as a cluster.
Choices random_parts(int threads, int vector, const Target& target, Random& random) {
  const int parts = static_cast<int>(random.pick({2, 3, 5, 9}));
  Choices choices{.splits = schedule::nest_of_shared_rows(threads, parts, vector)};
  if (random.chance(0.5)) {
    const auto blocks = static_cast<int>(random.between(1, target.sms));
    choices.blocks = blocks < parts ? 0 : blocks;
  }
  if (parts > target.max_cluster || choices.blocks > 0 || random.chance(0.5)) return choices;
  choices.splits = schedule::nest_of_shared_rows(threads, parts, vector, schedule::Level::cluster);
  if (random.chance(0.5))
    choices.splits = in_turns(std::move(choices.splits), static_cast<int>(random.between(1, 4)));
  return choices;
}

/// A warp, a part of one, or a block for a row; or columns side by side.
Choices random_rows(int threads, int vector, const Target& target, Random& random) {
  const int lanes = static_cast<int>(random.pick({8, 16, 32, 32}));
  const std::vector<Split> ways[] = {schedule::nest_of_lanes(threads, lanes, vector),
                                     schedule::nest_of_blocks(threads, vector),
                                     schedule::nest_of_columns(threads, lanes)};
  std::vector<Split> splits = ways[random.below(std::size(ways))];
  const auto blocks = static_cast<int>(random.between(1, 2 * target.sms));
  return {.splits = random.chance(0.16) ? in_turns(std::move(splits), blocks) : std::move(splits)};
}

/// What threads have from row to row, where blocks take rows in turns.
void keep_some(const ir::Graph& graph, const schedule::Phase& phase, Choices& choices, Random& random) {
  if (choices.splits.front() != Split{'r', schedule::Level::serial}) return;
  choices.ahead = random.chance(0.5);
  choices.invariants = random.chance(0.5);
  if (defect_of_row_to_row(graph, phase, choices).empty()) return;
  choices.ahead = choices.invariants = false;
}

/// What threads hold of a row from pass to pass, and where.
void hold_some(const ir::Graph& graph, const schedule::Phase& phase, Choices& choices, Random& random) {
  if (schedule::with_online_softmax(graph, phase)) choices.online_softmax = random.chance(0.5);
  const std::int64_t vector = units_of(choices.splits, 'c', schedule::Level::vector);
  if (vector > 1 && phase.stages[0].form == schedule::Stage::Form::inner_reduce && random.chance(0.2))
    choices.accumulators = static_cast<int>(random.pick<std::int64_t>({2, vector}));
  if (phase.stages.size() < 2) return;
  const bool parts = schedule::splits_rows(choices) && choices.cluster() == 1;
  if (!parts && !has_columns(phase) && random.between(0, 2) == 0) {
    const std::int64_t step =
        choices.cluster() > 1 ? step_elements(choices) / choices.cluster() : choices.vector();
    choices.shared_cache = static_cast<int>(step * random.pick({1, 2, 5, 32}));
    return;
  }
  choices.register_cache = static_cast<int>(random.pick({0, 4, 16, 64}));
  const std::vector<schedule::CachedValue> loaded = schedule::loaded_values(graph, phase);
  const bool fills_registers =
      std::all_of(loaded.begin(), loaded.end(), [&](const schedule::CachedValue& cached) {
        return static_cast<std::size_t>(choices.vector()) * size_of(graph[cached.node].type.dtype) % 4 == 0;
      });
  if (choices.register_cache > 0 && fills_registers) choices.packed = random.chance(0.5);
}

Choices random_choices(const ir::Graph& graph, const schedule::Phase& phase, const Target& target,
                       Random& random) {
  if (const auto rows = schedule::across_rows(graph, phase); rows && random.between(0, 2) > 0) {
    Choices choices = random_choices(graph, *rows, target, random);
    choices.across = true;
    if (columns_fit(graph, *rows, choices, target)) return choices;
  }
  const std::int64_t most = std::min<std::int64_t>(target.max_threads_per_block / 32, 16);
  int threads = static_cast<int>(32 * random.between(1, most));
  const int vector = static_cast<int>(random.pick({1, 2, 4, 8}));
  const ir::Relation relation = info(graph[dominant(phase)].op).relation;
  if (relation == ir::Relation::scan)
    return {.splits = random.chance(0.5) ? schedule::nest_of_scans_by_warps(threads)
                                         : schedule::nest_of_scans_by_threads(threads)};
  if (relation != ir::Relation::reduce) return random_elements(graph, phase, threads, vector, target, random);
  const int side_by_side = std::min(vector, schedule::widest_vector(graph, phase));
  for (const bool columns = has_columns(phase), parts = random.between(0, 3) == 0;; threads /= 2) {
    threads = std::max(32, threads / 32 * 32);
    Choices choices = columns ? random_columns(graph, phase, threads, side_by_side, target, random)
                      : parts ? random_parts(threads, side_by_side, target, random)
                              : random_rows(threads, side_by_side, target, random);
    hold_some(graph, phase, choices, random);
    keep_some(graph, phase, choices, random);
    const bool costly = !splits_rows(choices) && !schedule::costly_columns(graph, phase).empty();
    choices.columns_once = costly && random.chance(0.7);
    if (shared_bytes(graph, phase, choices) <= target.shared_per_block) return choices;
  }
}

std::optional<schedule::KernelChoices> random_tile(const ir::Graph& graph, const schedule::Segment& segment,
                                                   const schedule::HaloTiles& tiles, const Target& target,
                                                   Random& random) {
  const int threads =
      static_cast<int>(32 * random.between(1, std::min(target.max_threads_per_block, 256) / 32));
  schedule::KernelChoices choices;
  choices.phases.assign(segment.phases.size(), Choices{.splits = schedule::nest_of_elements(threads)});
  for (std::size_t i = 0; i < tiles.dims.size(); ++i)
    choices.tile.push_back(static_cast<int>(random.pick({1, 2, 3, 8, 17, 64})));
  return misfit(graph, segment, choices, target).empty() ? std::optional(std::move(choices)) : std::nullopt;
}

/// Random choices of blocks of one size, for the phases of a regional or a horizontal kernel.
std::optional<schedule::KernelChoices> random_phases(const ir::Graph& graph, const schedule::Segment& segment,
                                                     const Target& target, Random& random) {
  constexpr int tries = 8;
  schedule::KernelChoices choices;
  if (segment.regional()) {
    const auto tiles = schedule::halo_tiles(graph, segment.phases, segment.results);
    if (tiles && random.chance(0.8)) return random_tile(graph, segment, *tiles, target, random);
    choices.slices = random.pick({1, 1, 2, 3, 4});
  }
  for (const schedule::Phase& phase : segment.phases) {
    for (int i = 0; i < tries; ++i) {
      schedule::Choices own = random_choices(graph, phase, target, random);
      own.registers = 0;
      const bool first = choices.phases.empty();
      if (!first && own.block_threads() != choices.block_threads()) continue;
      choices.phases.push_back(std::move(own));
      break;
    }
  }
  const bool fits =
      choices.phases.size() == segment.phases.size() && misfit(graph, segment, choices, target).empty();
  return fits ? std::optional(std::move(choices)) : std::nullopt;
}

}  // namespace

schedule::KernelChoices random_choices(const ir::Graph& graph, const schedule::Segment& segment,
                                       const Target& target, Random& random) {
  if (segment.horizontal() || segment.regional()) {
    const auto drawn = random_phases(graph, segment, target, random);
    return drawn ? *drawn : schedule::model_choices(graph, segment, target).value();
  }
  if (segment.phases.size() == 1) return {{random_choices(graph, segment.phases[0], target, random)}};
  // What fits phases of one kernel is hard to draw: the scheduler knows two ways.
  const auto own = schedule::model_choices(graph, segment, target);
  const auto printed = schedule::astitch_choices(graph, segment, target);
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
  schedule::Choices choices{.splits = std::move(splits)};
  if (random.chance(0.15)) choices.blocks = static_cast<int>(random.between(1, 12));
  if (random.chance(0.15)) choices.accumulators = static_cast<int>(random.pick({2, 4}));
  if (random.chance(0.1)) choices.registers = static_cast<int>(random.pick({16, 32, 64, 128}));
  if (random.chance(0.25)) choices.register_cache = random.pick({4, 16, 64});
  if (choices.register_cache > 0) choices.packed = random.chance(0.3);
  if (choices.register_cache == 0 && random.chance(0.12))
    choices.shared_cache = random.pick({8, 24, 96, 192});
  if (choices.splits.front() == schedule::Split{'r', Level::serial}) {
    choices.ahead = random.chance(0.2);
    choices.invariants = random.chance(0.2);
  }
  choices.online_softmax = random.chance(0.08);
  choices.across = random.chance(0.08);
  choices.columns_once = random.chance(0.1);
  return choices;
}

std::optional<schedule::KernelChoices> random_nest(const ir::Graph& graph, const schedule::Segment& segment,
                                                   const Target& target, Random& random) {
  constexpr int tries = 12;
  if (segment.phases.size() > 1) return std::nullopt;
  const ir::Relation relation = info(graph[dominant(segment.phases[0])].op).relation;
  const bool loops = relation == ir::Relation::reduce || relation == ir::Relation::scan;
  const bool tiles = !loops && schedule::transposed(graph, segment.phases[0]).has_value();
  for (int i = 0; i < tries; ++i) {
    schedule::KernelChoices choices{{random_list(random.bits(), tiles)}};
    if (misfit(graph, segment, choices, target).empty()) return choices;
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
                                  Baseline::tvm, Baseline::one_op});
  options.stitch = random.between(0, 3) > 0;
  using Cooperative = schedule::PartitionOptions::Cooperative;
  options.cooperative =
      random.pick({Cooperative::never, Cooperative::gain, Cooperative::always, Cooperative::always});
  if (random.between(0, 5) == 0) options.schemes = schedule::SchemeRules::astitch;
  options.horizontal = random.between(0, 5) > 0;
  options.regional = random.between(0, 5) > 0;
  return options;
}

}  // namespace fuse::fuzz
