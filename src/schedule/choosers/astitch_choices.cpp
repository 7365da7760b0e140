// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/astitch_choices.hpp"

#include <algorithm>

#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/loop_shape.hpp"
#include "target/residency.hpp"

namespace fuse::schedule {
namespace {

constexpr int long_row = 1024;       // elements: longer ones are split where there are few
constexpr int cache_of_astitch = 8;  // blocks of a whole wave leave 32 registers per thread

/// The blocks that the device holds at a time.
int wave_of(int threads, const Target& target) {
  return target.sms * std::max(1, target.max_threads_per_sm / threads);
}

Choices choices_of_phase(const ir::Graph& graph, const Phase& phase, int threads, const Target& target) {
  const int wave = wave_of(threads, target);
  Choices choices{.splits = nest_of_elements(threads)};
  const ir::Node& root = graph[dominant(phase)];
  if (info(root.op).relation != ir::Relation::reduce) return choices;
  const LoopShape shape = loop_shape(graph, root);
  const std::int64_t rows = product(shape.kept).hint(), row = product(shape.reduced).hint();
  choices.register_cache = phase.stages.size() > 1 ? cache_of_astitch : 0;
  choices.splits = row <= long_row ? nest_of_lanes(threads) : nest_of_blocks(threads);
  if (has_columns(phase)) {
    if (!columns_fit(graph, phase, choices, target)) choices.splits = nest_of_blocks(threads);
    choices.splits = in_turns(std::move(choices.splits), wave);
  } else if (!shape.inner && rows >= tile_columns) {
    choices.splits = nest_of_columns(threads, tile_columns);
  } else if (rows > 0 && rows <= wave / 2 && row > long_row) {
    choices.splits = nest_of_shared_rows(threads, static_cast<int>(wave / rows));
  }
  return choices;
}

/// Packs vertically: blocks stay where there are more tiles than a wave; partials are combined after a
/// barrier.
Choices of_one(const ir::Graph& graph, const Phase& phase, int threads, const Target& target) {
  Choices choices = choices_of_phase(graph, phase, threads, target);
  const int wave = wave_of(threads, target);
  const KernelSchedule first = launches(graph, phase, choices).front();
  const auto blocks = static_cast<int>(std::min<std::int64_t>(wave, first.tiles.hint()));
  if (splits_rows(choices) || has_columns(phase)) {
    choices.blocks = blocks;
  } else if (!phase.in_place && first.tiles.hint() > wave) {
    choices.splits = in_turns(std::move(choices.splits), blocks);
  }
  return choices;
}

KernelChoices of_phases(const ir::Graph& graph, const Segment& segment, int threads, const Target& target) {
  KernelChoices choices;
  std::int64_t tiles = 1;
  for (const Phase& phase : segment.phases) {
    choices.phases.push_back(choices_of_phase(graph, phase, threads, target));
    for (const KernelSchedule& launch : launches(graph, phase, choices.phases.back()))
      tiles = std::max(tiles, launch.tiles.hint());
  }
  choices.blocks = static_cast<int>(std::min<std::int64_t>(wave_of(threads, target), tiles));
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const bool parts = splits_rows(choices.phases[i]) || has_columns(segment.phases[i]);
    if (parts) choices.phases[i].blocks = choices.blocks;
  }
  return choices;
}

bool fits(std::int64_t shared_bytes, int threads, int blocks, const Target& target) {
  const Residency least{.blocks = 1,
                        .threads = threads,
                        .shared_bytes = shared_bytes,
                        .blocks_per_sm = std::max(1, (blocks + target.sms - 1) / target.sms)};
  return shared_bytes <= target.shared_per_block && blocks_per_sm(least, target) >= least.blocks_per_sm;
}

bool fits(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
          const Target& target) {
  for (std::size_t i = 0; i < segment.phases.size(); ++i) {
    const Phase& phase = segment.phases[i];
    const Choices& own = choices.phases[i];
    if (has_columns(phase) && !columns_fit(graph, phase, own, target)) return false;
    if (!fits(shared_bytes(graph, phase, own), own.block_threads(), own.blocks, target)) return false;
  }
  return fits(shared_bytes(graph, segment, choices), choices.block_threads(), choices.blocks, target);
}

}  // namespace

std::optional<KernelChoices> astitch_choices(const ir::Graph& graph, const Segment& segment,
                                             const Target& target) {
  // The paper's packing has no rule for these.
  if (segment.horizontal() || segment.regional()) return std::nullopt;
  if (info(graph[dominant(segment.phases[0])].op).relation == ir::Relation::scan) return std::nullopt;
  for (int threads = target.max_threads_per_block; threads >= 32; threads /= 2) {
    KernelChoices choices = segment.phases.size() > 1
                                ? of_phases(graph, segment, threads, target)
                                : KernelChoices{{of_one(graph, segment.phases[0], threads, target)}};
    if (fits(graph, segment, choices, target)) return choices;
  }
  return std::nullopt;
}

}  // namespace fuse::schedule
