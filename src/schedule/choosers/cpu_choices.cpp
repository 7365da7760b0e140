// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/cpu_choices.hpp"

#include <algorithm>
#include <bit>

#include "schedule/mapping/schedule.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/staged.hpp"
#include "schedule/segments/transposed.hpp"

namespace fuse::schedule {
namespace {

constexpr int warp_threads = 32;
constexpr int most_cached_words = 255;            // of a lane: 32 KB of a warp, what first-level caches have
constexpr std::int64_t chunk_elements = 1 << 16;  // that a block takes of rows which share partial results
constexpr std::int64_t most_parts = 64;           // of those: the second launch adds them up
constexpr std::int64_t part_elements = 1
                                       << 14;  // of a row that several blocks share: enough to hide a launch

/// The choices with what passes need again in the lanes' own arrays, which lie in the first-level cache; else
/// in an array of the block.
Choices cached_on_cpu(const ir::Graph& graph, const Phase& phase, Choices choices, const Target& target) {
  if (phase.stages.size() < 2) return choices;
  const Dim row = product(loop_shape(graph, phase).reduced);
  const std::int64_t trips = elements_per_thread(row, choices);
  const std::int64_t words =
      trips > 0 ? cache_registers(graph, cached_values(graph, phase), trips, false) : 0;
  if (words > 0 && words <= most_cached_words) {
    choices.register_cache = static_cast<int>(words);
    return choices;
  }
  if (has_columns(phase)) return choices;
  std::int64_t bytes = 0;  // of an element, in all rows of a block
  for (const CachedValue& each : loaded_values(graph, phase))
    bytes += rows_at_once(choices) * static_cast<std::int64_t>(size_of(graph[each.node].type.dtype));
  if (bytes == 0) return choices;
  const std::int64_t step = step_elements(choices);
  const std::int64_t room = (target.shared_per_block - shared_bytes(graph, phase, choices)) / bytes;
  const std::int64_t steps = std::min(room / step, (row.max() - 1) / step + 1);
  choices.shared_cache = static_cast<int>(std::max<std::int64_t>(steps, 0) * step);
  return choices;
}

/// Blocks that take the rows in turns, each with partial results for all columns: as many as have a chunk of
/// rows each. Their number is part of the results' bits, so it goes by the shape alone.
Choices by_columns(const ir::Graph& graph, const Phase& rows) {
  const LoopShape shape = loop_shape(graph, rows);
  const std::int64_t count = product(shape.kept).hint(), row = product(shape.reduced).hint();
  const std::int64_t of_a_chunk = std::max<std::int64_t>(4, chunk_elements / std::max<std::int64_t>(1, row));
  const auto parts = static_cast<int>(std::clamp<std::int64_t>(count / of_a_chunk, 1, most_parts));
  return {.splits = in_turns(nest_of_lanes(warp_threads), parts)};
}

Choices choices_on_cpu(const ir::Graph& graph, const Phase& phase, bool may_split, const Target& target) {
  const ir::Node& root = graph[dominant(phase)];
  const ir::Relation relation = info(root.op).relation;
  if (relation == ir::Relation::scan) {
    return {.splits = loop_shape(graph, root).inner ? nest_of_scans_by_warps(warp_threads)
                                                    : nest_of_scans_by_threads(warp_threads)};
  }
  if (relation != ir::Relation::reduce) {
    const auto values = transposed(graph, phase);
    if (values && tile_bytes(graph, *values, 1) <= target.shared_per_block)
      return {.splits = nest_of_tiles(warp_threads)};
    return {.splits = nest_of_elements(warp_threads)};
  }
  const LoopShape shape = loop_shape(graph, root);
  const std::int64_t results = product(shape.kept).hint(), row = product(shape.reduced).hint();
  if (has_columns(phase)) return cached_on_cpu(graph, phase, by_columns(graph, phase), target);
  if (const std::optional<Phase> rows = across_rows(graph, phase); rows && !shape.inner) {
    Choices across = by_columns(graph, *rows);
    across.across = true;
    if (columns_fit(graph, *rows, across, target)) return across;
  }
  if (!shape.inner && results >= tile_columns) return {.splits = nest_of_columns(warp_threads)};
  if (may_split && phase.stages.size() == 1 && results <= 4 * target.sms && row >= 2 * part_elements) {
    const auto parts = static_cast<int>(std::min<std::int64_t>(row / part_elements, 1024));
    return {.splits = nest_of_shared_rows(warp_threads, parts)};
  }
  const auto wanted = static_cast<unsigned>(std::clamp<std::int64_t>(row, 2, warp_threads));
  const auto lanes = static_cast<int>(std::bit_ceil(wanted));
  return cached_on_cpu(graph, phase, {.splits = nest_of_lanes(warp_threads, lanes)}, target);
}

}  // namespace

std::optional<KernelChoices> cpu_choices(const ir::Graph& graph, const Segment& segment,
                                         const Target& target) {
  const bool beside = segment.phases.size() > 1;
  if (beside && !segment.horizontal()) return std::nullopt;
  KernelChoices choices;
  for (const Phase& phase : segment.phases) {
    choices.phases.push_back(choices_on_cpu(graph, phase, !beside, target));
    const Phase run = staged(graph, phase, choices.phases.back());
    if (has_columns(run) && (beside || !columns_fit(graph, run, choices.phases.back(), target)))
      return std::nullopt;
  }
  if (shared_bytes(graph, segment, choices) > target.shared_per_block) return std::nullopt;
  return choices;
}

}  // namespace fuse::schedule
