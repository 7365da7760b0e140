// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/regional_choices.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedule/choosers/model_choices.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/segments/slices.hpp"
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

}  // namespace

std::optional<KernelChoices> regional_choices(const ir::Graph& graph, const Segment& segment,
                                              const std::vector<Choices>& alone, const Target& target) {
  const std::optional<Slices> slices = slices_of(graph, segment.phases);
  if (!slices) return std::nullopt;
  std::vector<Choices> whole;
  for (std::size_t i = 0; i < alone.size(); ++i) {
    whole.push_back(in_one_launch(graph, segment.phases[i], alone[i], target));
    if (walks_tiles(whole[i]) || has_columns(staged(graph, segment.phases[i], whole[i]))) return std::nullopt;
  }
  std::int64_t passed_on = 0;  // bytes of shared memory for each slice
  for (const BlockValue& each : block_values(graph, segment, 1)) {
    if (each.elements > target.shared_per_block || passed_on > target.shared_per_block) return std::nullopt;
    passed_on += each.elements * static_cast<std::int64_t>(size_of(graph[each.value].type.dtype));
  }
  std::optional<KernelChoices> best;
  double least = 0;
  for (int threads = target.max_threads_per_block; threads >= fewest_threads; threads /= 4) {
    double before = std::numeric_limits<double>::infinity();  // with half as many slices
    for (int of_block = 1; of_block <= most_slices && (slices->count % of_block).is(0); of_block *= 2) {
      KernelChoices choices = choices_with(graph, segment, whole, *slices, of_block, threads);
      std::int64_t shared = passed_on * of_block;
      for (std::size_t i = 0; i < choices.phases.size(); ++i)
        shared += shared_bytes(graph, staged(graph, segment.phases[i], choices.phases[i]), choices.phases[i]);
      if (shared > target.shared_per_block) break;
      const double seconds = regional_seconds(graph, segment, choices, *slices, shared, target);
      if (!best || seconds < least) best = std::move(choices), least = seconds;
      if (seconds >= before) break;
      before = seconds;
    }
  }
  return best;
}

}  // namespace fuse::schedule
