// SPDX-License-Identifier: Apache-2.0
#include "runtime/explore/kernel_options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/search/reduction_order.hpp"
#include "schedule/search/search_chooser.hpp"

namespace fuse::runtime {
namespace {

using schedule::Choices;
using schedule::KernelChoices;
using schedule::Level;
using schedule::Phase;
using schedule::Split;
using schedule::Stage;

/// A few of each, and those of the default.
schedule::NestNumbers numbers_of(const ir::Graph& graph, const Phase& phase, const Target& target,
                                 const Choices& usual) {
  schedule::NestNumbers numbers = few_numbers(graph, phase, target);
  // Fewer still: all nests of each kernel are listed before the first run.
  numbers.warps = {1, 4, 8, 32};
  numbers.blocks_per_row = {1, 4, 16};
  numbers.register_cache = {32};
  numbers.shared_cache = {1024};
  numbers.accumulators = {2};
  const auto add = [](std::vector<int>& list, int number) {
    if (number > 0 && std::find(list.begin(), list.end(), number) == list.end()) list.push_back(number);
  };
  for (const Split& split : usual.splits) {
    const auto units = static_cast<int>(split.extent);
    if (split.level == Level::warp) add(numbers.warps, units);
    if (split.level == Level::lane && split.dim == 'r') add(numbers.lanes, units);
    if (split.level == Level::vector) add(numbers.vectors, units);
    if (split.level == Level::grid && split.dim == 'r') add(numbers.turns, units);
    if (split.dim == 'c' && (split.level == Level::grid || split.level == Level::cluster))
      add(numbers.blocks_per_row, units);
  }
  add(numbers.register_cache, usual.register_cache);
  add(numbers.shared_cache, usual.shared_cache);
  return numbers;
}

bool adds(const ir::Graph& graph, const Stage& stage) {
  const ir::Relation relation = info(graph[stage.root].op).relation;
  return relation == ir::Relation::reduce || relation == ir::Relation::scan;
}

}  // namespace

std::vector<KernelChoices> kernel_options(const ir::Graph& graph, const schedule::Segment& segment,
                                          const Target& target, const KernelLimits& limits) {
  std::vector<KernelChoices> options = {segment.chosen.value().choices};
  if (limits.most <= 1) return options;
  const std::string order = reduction_order(graph, segment, options[0]);
  const auto is_allowed = [&](const KernelChoices& choices) {
    const bool waits = std::any_of(choices.phases.begin(), choices.phases.end(),
                                   [](const Choices& phase) { return phase.blocks > 0; });
    return (limits.grid_barriers || !waits) &&
           (limits.bits == Bits::any || reduction_order(graph, segment, choices) == order);
  };
  const std::optional<KernelChoices> searched =
      search_designs(graph, segment, options[0], target,
                     {.keep_order = limits.bits == Bits::keep, .grid_barriers = limits.grid_barriers})
          .choices;
  if (searched && *searched != options[0] && is_allowed(*searched)) options.push_back(*searched);
  if (segment.phases.size() != 1 || segment.in_place()) return options;
  const Phase& phase = segment.phases[0];
  const Choices& usual = options[0].phases[0];
  std::vector<std::pair<double, KernelChoices>> found;
  each_legal_nest(graph, phase, target, numbers_of(graph, phase, target, usual), [&](const Choices& choices) {
    KernelChoices one{.phases = {choices}};
    if (!is_allowed(one) || std::find(options.begin(), options.end(), one) != options.end()) return;
    found.emplace_back(phase_seconds(graph, phase, choices, target), std::move(one));
  });
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& a, const auto& b) { return a.first < b.first; });
  // Of a structure that the default has, the fastest other numbers are tried as well.
  std::set<std::string> structures;
  for (auto& [seconds, choices] : found) {
    if (std::cmp_greater_equal(options.size(), limits.most)) break;
    if (structures.insert(structure_of(choices.phases[0])).second) options.push_back(std::move(choices));
  }
  return options;
}

std::string order_of_additions(const Compiled& stages) {
  std::set<std::string> lines;  // of segments in any order
  for (const schedule::Segment& segment : stages.partition.segments) {
    if (segment.kind == schedule::Segment::Kind::kernel) {
      for (std::size_t i = 0; i < segment.phases.size(); ++i) {
        const schedule::Phase& phase = segment.phases[i];
        const std::string order =
            reduction_order(stages.graph, phase, segment.chosen.value().choices.phases[i]);
        for (const Stage& stage : phase.stages) {
          if (adds(stages.graph, stage)) lines.insert(fmt::format("{} {}", stage.root, order));
        }
      }
      continue;
    }
    lines.insert(fmt::format("{} {}", segment.root, ir::content_hash(stages.graph, segment.nodes)));
  }
  return fmt::format("{}\n", fmt::join(lines, "\n"));
}

}  // namespace fuse::runtime
