// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/regional_launch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "schedule/regional/halo_tiles.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

void keep_results(PhaseSchedule& phase, const Dim& results) {
  for (KernelSchedule& launch : phase.kernels) {
    launch.results = launch.nest.dims[0].extent = results;
    launch.tiles = units(launch.nest, Level::grid);
    launch.grid = 1;
  }
}

/// The kernel that has so many blocks.
KernelSchedule launch_of(const std::vector<PhaseSchedule>& phases, const Dim& blocks) {
  KernelSchedule whole{.role = KernelSchedule::Role::regional,
                       .results = blocks,
                       .reduced = 1,
                       .tiles = blocks,
                       .grid = blocks,
                       .block_threads = phases[0].kernels[0].block_threads,
                       .index_type = i32,
                       .registers = phases[0].kernels[0].registers};
  for (const PhaseSchedule& phase : phases) {
    if (phase.kernels[0].index_type == i64) whole.index_type = i64;
  }
  return whole;
}

void make_tiles(const ir::Graph& graph, const analysis::Facts& facts, Schedule& schedule) {
  const HaloTiles tiles = halo_tiles(graph, schedule.segment.phases, schedule.segment.results).value();
  const std::vector<int>& tile = schedule.choices.tile;
  const Dim blocks = product(tile_counts(tiles.dims, tile));
  Dim most = 0;  // elements that all blocks compute of all phases
  for (std::size_t i = 0; i < schedule.phases.size(); ++i) {
    PhaseSchedule& phase = schedule.phases[i];
    phase.windows = tiles.phases[i];
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents_of(phase.windows, tile)) elements *= extent;
    keep_results(phase, elements);
    most = most + blocks * elements;
  }
  schedule.kernels = {launch_of(schedule.phases, blocks)};
  if (std::min(most.max(), facts.range(most).max) > std::numeric_limits<std::int32_t>::max())
    schedule.kernels[0].index_type = i64;
}

std::string defect_of_slices(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  const std::optional<Slices> slices = slices_of(graph, segment.phases);
  if (!slices) return "phases that no slices go through";
  const std::int64_t of_block = choices.slices;
  if (!(slices->count % of_block).is(0))
    return fmt::format("{} slices per block, of {}", of_block, slices->count.to_string());
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Choices& own = choices.phases[i];
    const Phase phase = staged(graph, segment.phases[i], own);
    if (walks_tiles(own) || own.splits.front() == Split{'r', Level::serial})
      return fmt::format("phase {} needs r:grid, the turns of a block", i);
    const std::int64_t side_by_side = units_of(own.splits, 'r', Level::vector);
    if (!(slices->results[i] * of_block % side_by_side).is(0) ||
        !symbols_to_test(graph, phase, own.vector()).empty())
      return fmt::format("phase {} has vectors that do not divide what a block has of it", i);
  }
  return "";
}

std::string defect_of_tile(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  constexpr std::int64_t most_elements = 1 << 20;
  const std::optional<HaloTiles> tiles = halo_tiles(graph, segment.phases, segment.results);
  if (!tiles)
    return "a tile of phases that do not read windows of each other, or store more than the last's results";
  if (choices.tile.size() != tiles->dims.size())
    return fmt::format("a tile of {} dims, and the last phase has {}", choices.tile.size(),
                       tiles->dims.size());
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    std::int64_t elements = 1;
    for (const std::int64_t extent : extents_of(tiles->phases[i], choices.tile)) {
      if (extent < 1 || extent > most_elements || elements > most_elements / extent)
        return fmt::format("a tile and halo of more than {} elements", most_elements);
      elements *= extent;
    }
    const std::vector<Split>& splits = choices.phases[i].splits;
    if (walks_tiles(choices.phases[i]) || splits.front() == Split{'r', Level::serial})
      return fmt::format("phase {} needs r:grid, the turns of a block", i);
    if (units_of(splits, 'r', Level::vector) > 1)
      return fmt::format("phase {} has vectors, and threads walk a tile one element at a time", i);
  }
  return "";
}

}  // namespace

void make_regional(const ir::Graph& graph, const analysis::Facts& facts, Schedule& schedule) {
  schedule.in_block = block_values(graph, schedule.segment, schedule.choices);
  if (!schedule.choices.tile.empty()) return make_tiles(graph, facts, schedule);
  const Slices slices = slices_of(graph, schedule.segment.phases).value();
  const std::int64_t of_block = schedule.choices.slices;
  for (std::size_t i = 0; i < schedule.phases.size(); ++i)
    keep_results(schedule.phases[i], slices.results[i] * of_block);
  schedule.kernels = {launch_of(schedule.phases, slices.count / of_block)};
}

std::string defect_of_blocks(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  if (choices.slices == 0 && choices.tile.empty()) return "blocks of no slices, and no tile";
  if (choices.slices > 0 && !choices.tile.empty()) return "blocks of slices and of a tile";
  if (choices.blocks != 0) return "blocks that wait for each other, and these do not";
  return choices.slices > 0 ? defect_of_slices(graph, segment, choices)
                            : defect_of_tile(graph, segment, choices);
}

}  // namespace fuse::schedule
