// fusec nests: the loops that kernels of a graph can have, and what the cost model has of each.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "fusec/commands.hpp"
#include "fusec/compiled_graph.hpp"
#include "fusec/progress.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/search/search_chooser.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::fusec {
namespace {

struct Estimate {
  double seconds = 0;
  schedule::Choices choices{};
};

std::vector<Estimate> estimates(const ir::Graph& graph, const schedule::Segment& segment,
                                const Target& target) {
  std::vector<Estimate> result;
  const schedule::Phase& phase = segment.phases[0];
  each_legal_nest(graph, phase, target, schedule::few_numbers(graph, phase, target),
                  [&](const schedule::Choices& choices) {
                    result.push_back({schedule::phase_seconds(graph, phase, choices, target), choices});
                  });
  std::stable_sort(result.begin(), result.end(),
                   [](const Estimate& a, const Estimate& b) { return a.seconds < b.seconds; });
  return result;
}

std::string us(double seconds) { return fmt::format("{:>9.2f}", seconds * 1e6); }

/// "a search finds {...}, 3.18 us: 4 of 6 loops are left, ..".
std::string searched_line(const CompiledGraph& compiled, const schedule::Segment& segment) {
  const schedule::SearchResult found = schedule::search_designs(
      compiled.stages.graph, segment, segment.chosen.value().choices, compiled.target, {});
  const schedule::SearchReport& report = found.report;
  const bool same = !found.choices || *found.choices == segment.chosen->choices;
  const std::string what =
      same ? "nothing faster"
           : fmt::format("{{{}}}, {:.2f} us", found.choices->to_string(), report.seconds * 1e6);
  return fmt::format(
      "a search finds {}: {} of {} loops are left, which can be bound in {} of {} ways; {} designs "
      "examined, {}",
      what, report.classes, report.loops, report.designs_after, report.designs_before, report.examined,
      report.proven ? "proven to be enough" : "others may be faster");
}

std::string of_segment(const CompiledGraph& compiled, const schedule::Segment& segment, int count) {
  const ir::Graph& graph = compiled.stages.graph;
  const schedule::Chosen& chosen = segment.chosen.value();
  std::string text =
      fmt::format("{}  {{{}}}, which is chosen\n", us(chosen.seconds), chosen.choices.to_string());
  if (segment.phases.size() > 1)
    return text + "a kernel of several phases has a nest for each, and none of its own\n" +
           searched_line(compiled, segment);
  const std::vector<Estimate> all = estimates(graph, segment, compiled.target);
  std::set<std::string> structures;
  for (const Estimate& each : all) structures.insert(structure_of(each.choices));
  for (std::size_t i = 0; i < all.size() && std::cmp_less(i, count); ++i)
    text += fmt::format("{}  {{{}}}\n", us(all[i].seconds), all[i].choices.to_string());
  return text + fmt::format("{} legal nests of {} structures were tried\n", all.size(), structures.size()) +
         searched_line(compiled, segment);
}

}  // namespace

int execute(const NestsOptions& options) {
  Progress progress("planning");
  const CompiledGraph compiled = compile_graph(options.graph);
  fmt::print("{}", build_line(compiled));
  const Compiled& stages = compiled.stages;
  const schedule::EqualSegments equal =
      schedule::equal_segments(stages.graph, stages.partition.segments, stages.partition.storage);
  const std::size_t segments = stages.partition.segments.size();
  if (std::cmp_greater_equal(options.segment, segments))
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = segments == 1
                                ? fmt::format("--segment {}: the graph has 1 segment, 0", options.segment)
                                : fmt::format("--segment {}: the graph has {} segments, 0 to {}",
                                              options.segment, segments, segments - 1),
                 .hint = "fusec plan prints their numbers"});
  std::string hints;
  for (const ir::Symbol& symbol : stages.graph.symbols)
    hints += fmt::format("{}{} = {}", hints.empty() ? "" : ", ", symbol.name,
                         Dim::symbol(symbol.name, symbol.range).hint());
  progress.print(fmt::format("graph {} for {}{}\n", compiled.source.name, compiled.target.name,
                             hints.empty() ? "" : ", estimated at the hints " + hints));
  bool any = false;
  for (const std::uint32_t number : equal.first) {
    const schedule::Segment& segment = stages.partition.segments[number];
    if (options.segment >= 0 &&
        equal.form_of[static_cast<std::size_t>(options.segment)] != equal.form_of[number])
      continue;
    progress.now(fmt::format("the nests of segment {}", number));
    progress.print(fmt::format(
        "{}segment {}, ends at {} {}: kernel {:016x}\n       us  choices\n{}", any ? "\n" : "", number,
        stages.graph.value_name(segment.root), to_string(stages.graph[segment.root].op),
        content_key(stages.graph, equal.forms[number]), of_segment(compiled, segment, options.count)));
    any = true;
  }
  if (!any) progress.print(options.segment < 0 ? "the graph has no kernel" : "the segment is no kernel");
  return 0;
}

}  // namespace fuse::fusec
