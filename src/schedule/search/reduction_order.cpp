// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/reduction_order.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/segments/staged.hpp"

namespace fuse::schedule {
namespace {

bool has_stage(const Phase& phase, Stage::Form form) {
  return std::any_of(phase.stages.begin(), phase.stages.end(),
                     [&](const Stage& stage) { return stage.form == form; });
}

/// Threads that walk a row add what each meets, and combine by lanes, by warps and by blocks. Launches, a
/// kernel whose blocks wait, and a cluster take the partial results of blocks in one order. Where lanes of a
/// warp have several rows, lanes that lie apart take the results of warps in another order than neighbours
/// do.
std::string order_of_rows(const Choices& choices) {
  const std::vector<Split>& splits = choices.splits;
  const bool rows_in_warp = units_of(splits, 'r', Level::lane) > 1 && units_of(splits, 'c', Level::lane) > 1;
  return fmt::format("row {} blocks {} warps {} {}lanes {} elements {} accumulators; ",
                     units_of(splits, 'c', Level::grid) * units_of(splits, 'c', Level::cluster),
                     units_of(splits, 'c', Level::warp), units_of(splits, 'c', Level::lane),
                     rows_in_warp && fastest_lane(splits) == 'r' ? "distant " : "",
                     units_of(splits, 'c', Level::vector), choices.accumulators);
}

/// Threads keep columns over the rows that they meet. All threads of a block combine what blocks left.
std::string order_of_columns(const Choices& choices) {
  const std::vector<Split>& splits = choices.splits;
  return fmt::format("columns {} blocks {} warps {} lanes {} rows by {} threads; ",
                     units_of(splits, 'r', Level::grid), units_of(splits, 'r', Level::warp),
                     units_of(splits, 'r', Level::lane), units_of(splits, 'r', Level::vector),
                     choices.block_threads());
}

}  // namespace

std::string reduction_order(const ir::Graph& graph, const Phase& cut, const Choices& choices) {
  const Phase phase = staged(graph, cut, choices);
  const ir::Relation relation = info(graph[dominant(phase)].op).relation;
  if (relation == ir::Relation::scan)
    return fmt::format("scan {} lanes; ", units_of(choices.splits, 'c', Level::lane));
  if (relation != ir::Relation::reduce) return "";
  std::string text;
  if (choices.online_softmax) text += "online; ";
  if (choices.across) text += "across; ";
  if (has_stage(phase, Stage::Form::inner_reduce)) text += order_of_rows(choices);
  if (has_stage(phase, Stage::Form::outer_reduce)) text += order_of_columns(choices);
  return text;
}

std::string reduction_order(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices) {
  std::string text;
  for (std::size_t i = 0; i < segment.phases.size(); ++i)
    text += reduction_order(graph, segment.phases[i], choices.phases[i]) + "| ";
  return text;
}

}  // namespace fuse::schedule
