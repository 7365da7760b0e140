// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/search_chooser.hpp"

#include <bit>
#include <utility>

#include "ir/graph/hash.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/couple.hpp"
#include "schedule/search/design_problem.hpp"
#include "schedule/search/loops.hpp"

namespace fuse::schedule {
namespace {

std::uint64_t options_key(const SearchOptions& options) {
  ir::Hasher hasher;
  hasher.add(static_cast<std::uint64_t>(options.most_examined))
      .add(static_cast<std::uint64_t>(options.most_expanded))
      .add(std::uint64_t{options.keep_order})
      .add(std::uint64_t{options.grid_barriers})
      .add(std::bit_cast<std::uint64_t>(options.slack))
      .add(std::uint64_t{options.numbers.has_value()});
  if (!options.numbers) return hasher.value();
  const auto& [warps, row_lanes, vectors, blocks_per_row, clusters, turns, column_turns, waiting,
               accumulators, row_to_row] = *options.numbers;
  for (const auto* list : {&warps, &row_lanes, &vectors, &blocks_per_row, &clusters, &turns, &column_turns,
                           &waiting, &accumulators}) {
    hasher.add(list->size());
    for (const int number : *list) hasher.add(static_cast<std::uint64_t>(number));
  }
  return hasher.add(std::uint64_t{row_to_row}).value();
}

SearchReport report_of_loops(const ir::Graph& graph, const Segment& segment) {
  const std::vector<Loop> loops = loops_of(graph, segment);
  const CoupledLoops classes = coupled(loops);
  return {.loops = loops.size(),
          .classes = classes.classes.size(),
          .designs_before = classes.designs_before,
          .designs_after = classes.designs_after};
}

}  // namespace

SearchResult search_designs(const ir::Graph& graph, const Segment& segment, const KernelChoices& first,
                            const Target& target, const SearchOptions& options) {
  SearchResult result{.choices = first, .report = report_of_loops(graph, segment)};
  SearchReport& report = result.report;
  report.of_phases = segment.phases.size() > 1;
  report.default_seconds = report.seconds = segment_seconds(graph, segment, first, target);
  if (!first.tile.empty()) return result;  // a tile is all that such a kernel's cost depends on
  report.proven = true;
  bool better = true;
  // What is best for a phase may depend on the others, so they have another turn while anything changes.
  while (better) {
    better = false;
    report.proven = true;
    for (std::size_t phase = 0; phase < segment.phases.size(); ++phase) {
      const DesignProblem problem(graph, segment, *result.choices, phase, target, options);
      const SearchLimits limits{.most_examined = options.most_examined - report.examined,
                                .most_expanded = options.most_expanded - report.expanded,
                                .slack = options.slack};
      const Searched found = best_first(problem, limits, report.seconds);
      report.examined += found.examined;
      report.expanded += found.expanded;
      report.pruned += found.pruned;
      report.proven = report.proven && found.proven;
      if (!found.design) continue;
      result.choices = problem.choices(*found.design);
      report.seconds = found.cost;
      better = report.of_phases;
    }
  }
  return result;
}

Chooser searched(SearchOptions options, Chooser otherwise) {
  const std::uint64_t key_of_options = options_key(options);
  return [options = std::move(options), otherwise = std::move(otherwise), key_of_options](
             const ir::Graph& graph, const Segment& segment,
             const Target& target) -> std::optional<KernelChoices> {
    DesignKey key;
    if (options.store.find) {
      key = {segment_key(graph, segment), target_key(target), key_of_options};
      if (std::optional<SearchResult> known = options.store.find(key)) {
        if (options.report && known->choices) options.report(known->report);
        return std::move(known->choices);
      }
    }
    SearchResult result;
    if (const std::optional<KernelChoices> first = otherwise(graph, segment, target)) {
      result = search_designs(graph, segment, *first, target, options);
      if (options.report) options.report(result.report);
    }
    if (options.store.keep) options.store.keep(key, result);
    return result.choices;
  };
}

}  // namespace fuse::schedule
