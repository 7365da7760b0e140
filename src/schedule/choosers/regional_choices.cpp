// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/regional_choices.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <utility>

#include "schedule/choosers/model_choices.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/choosers/tile_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/regional/halo_tiles.hpp"
#include "schedule/regional/slices.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/vector_width.hpp"

namespace fuse::schedule {
namespace {

constexpr int most_slices = 64;     // of a block
constexpr int fewest_threads = 64;  // of a block; sizes are the target's largest over a power of 4

/// The choices with vectors that divide what a block has, whatever the extents.
Choices with_fitting_vectors(const ir::Graph& graph, const Phase& phase, Choices choices,
                             const Dim& results) {
  const auto narrow = [&](char dim) {
    choices.set(dim, Level::vector, units_of(choices.splits, dim, Level::vector) / 2);
    choices.accumulators = 1;
    choices.packed = false;
  };
  while (!(results % units_of(choices.splits, 'r', Level::vector)).is(0)) narrow('r');
  while (!symbols_to_test(graph, phase, choices.vector()).empty())
    narrow(units_of(choices.splits, 'c', Level::vector) > 1 ? 'c' : 'r');
  return choices;
}

/// The choices with blocks of another size, with as many warps for each row as have a few vectors each; the
/// others have rows of their own.
Choices with_threads(Choices alone, int threads, std::int64_t row) {
  constexpr std::int64_t few = 4;
  Choices choices = with_threads(std::move(alone), threads);
  if (!walks_elements(choices)) return choices;
  const std::int64_t warps = choices.block_threads() / 32;
  const std::int64_t of_warp =
      few * units_of(choices.splits, 'c', Level::lane) * units_of(choices.splits, 'c', Level::vector);
  std::int64_t of_row = 1;
  while (of_row < warps && of_row * of_warp < row) of_row *= 2;
  return warps % of_row == 0 ? choices.set('c', Level::warp, of_row).set('r', Level::warp, warps / of_row)
                             : choices;
}

KernelChoices choices_with(const ir::Graph& graph, const Segment& segment, const std::vector<Choices>& alone,
                           const Slices& slices, int of_block, int threads) {
  KernelChoices choices{.slices = of_block};
  for (std::size_t i = 0; i < alone.size(); ++i) {
    const bool scans = info(graph[dominant(segment.phases[i])].op).relation == ir::Relation::scan;
    const std::int64_t row = launches(graph, segment.phases[i], alone[i])[0].reduced.hint();
    Choices own = scans ? with_threads(alone[i], threads) : with_threads(alone[i], threads, row);
    own.shared_cache = 0;  // it was for blocks of another size
    own.registers = 0;
    const Phase phase = staged(graph, segment.phases[i], own);
    choices.phases.push_back(
        with_fitting_vectors(graph, phase, std::move(own), slices.results[i] * std::int64_t{of_block}));
  }
  return choices;
}

/// Choices with the seconds that they take.
struct Timed {
  KernelChoices choices{};
  double seconds = 0;
};

std::optional<Timed> choices_of_slices(const ir::Graph& graph, const Segment& segment,
                                       const std::vector<Choices>& alone, const Target& target) {
  const std::optional<Slices> slices = slices_of(graph, segment.phases);
  if (!slices) return std::nullopt;
  std::vector<Choices> whole;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    whole.push_back(in_one_launch(graph, segment.phases[i], alone[i], target));
    if (walks_tiles(whole[i]) || has_columns(staged(graph, segment.phases[i], whole[i]))) return std::nullopt;
  }
  std::int64_t passed_on = 0;  // bytes of shared memory for each slice
  for (const BlockValue& each : block_values(graph, segment, {.slices = 1})) {
    if (each.elements > target.shared_per_block || passed_on > target.shared_per_block) return std::nullopt;
    passed_on += each.elements * static_cast<std::int64_t>(size_of(graph[each.value].type.dtype));
  }
  std::optional<Timed> best;
  for (int threads = target.max_threads_per_block; threads >= fewest_threads; threads /= 4) {
    double before = std::numeric_limits<double>::infinity();  // with half as many slices
    for (int of_block = 1; of_block <= most_slices && (slices->count % of_block).is(0); of_block *= 2) {
      KernelChoices choices = choices_with(graph, segment, whole, *slices, of_block, threads);
      std::int64_t shared = passed_on * of_block;
      for (std::size_t i = 0; i < choices.phases.size(); ++i)
        shared += shared_bytes(graph, staged(graph, segment.phases[i], choices.phases[i]), choices.phases[i]);
      if (shared > target.shared_per_block) break;
      const double seconds = regional_seconds(graph, segment, choices, *slices, shared, target);
      if (!best || seconds < best->seconds) best = Timed{std::move(choices), seconds};
      if (seconds >= before) break;
      before = seconds;
    }
  }
  return best;
}

/// The extents that a tile may have along a dim: powers of two, and all of it.
std::vector<int> extents_along(const Dim& dim, int most) {
  std::vector<int> extents;
  const std::int64_t all = dim.max();
  for (int extent = 1; extent < std::min<std::int64_t>(all, most); extent *= 2) extents.push_back(extent);
  if (all <= most)
    extents.push_back(static_cast<int>(std::max<std::int64_t>(1, all)));
  else
    extents.push_back(most);
  return extents;
}

/// Calls `f` with each tile of 64 to 4096 elements that is as long as a warp along the innermost dim that is
/// longer than 1, or as long as that is, and longer than 1 along no other dims than this and those of
/// windows.
void each_tile(const HaloTiles& tiles, const std::function<void(const std::vector<int>&)>& f) {
  constexpr int fewest = 64, most = 4096, of_warp = 32;
  const std::size_t rank = tiles.dims.size();
  std::vector<std::vector<int>> extents(rank, {1});
  std::size_t longest = rank;  // the innermost long dim
  for (std::size_t i = rank; i-- > 0;) {
    const bool has_windows = std::any_of(tiles.phases.begin(), tiles.phases.end(),
                                         [&](const Windows& windows) { return windows[i] != Window{}; });
    const bool inner = longest == rank && !tiles.dims[i].is(1);
    if (inner) longest = i;
    if (inner || has_windows || longest == rank) extents[i] = extents_along(tiles.dims[i], most);
    if (inner)
      std::erase_if(extents[i], [&](int each) { return each < of_warp && each != extents[i].back(); });
  }
  std::vector<int> tile(rank, 1);
  const std::function<void(std::size_t, std::int64_t)> from = [&](std::size_t i, std::int64_t elements) {
    if (elements > most) return;
    if (i == rank) {
      if (elements >= fewest || elements >= product(tiles.dims).max()) f(tile);
      return;
    }
    for (const int extent : extents[i]) {
      tile[i] = extent;
      from(i + 1, elements * extent);
    }
  };
  from(0, 1);
}

std::optional<Timed> choices_of_tiles(const ir::Graph& graph, const Segment& segment, const Target& target) {
  std::optional<HaloTiles> tiles = halo_tiles(graph, segment.phases, segment.results);
  if (!tiles) return std::nullopt;
  const TileCost cost(graph, segment, std::move(*tiles), target);
  int threads = std::min(256, target.max_threads_per_block);
  double least = std::numeric_limits<double>::infinity();
  std::vector<int> best;
  each_tile(cost.tiles(), [&](const std::vector<int>& tile) {
    if (cost.shared_bytes(tile) > target.shared_per_block || !cost.repeats_little(tile)) return;
    const double seconds = cost.seconds(tile, threads);
    if (seconds < least) best = tile, least = seconds;
  });
  if (best.empty()) return std::nullopt;
  for (const int other : {512, 128}) {
    if (other > target.max_threads_per_block) continue;
    const double seconds = cost.seconds(best, other);
    if (seconds < least) threads = other, least = seconds;
  }
  const Choices own{.splits = nest_of_elements(threads)};
  KernelChoices choices{.phases = std::vector<Choices>(segment.phases.size(), own), .tile = best};
  return Timed{std::move(choices), least};
}

}  // namespace

std::optional<KernelChoices> regional_choices(const ir::Graph& graph, const Segment& segment,
                                              const std::vector<Choices>& alone, const Target& target) {
  std::optional<Timed> sliced = choices_of_slices(graph, segment, alone, target),
                       tiled = choices_of_tiles(graph, segment, target);
  if (!sliced && !tiled) return std::nullopt;
  const bool tile = tiled && (!sliced || tiled->seconds < sliced->seconds);
  return std::move((tile ? tiled : sliced)->choices);
}

}  // namespace fuse::schedule
