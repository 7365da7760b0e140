// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/design_problem.hpp"

#include <algorithm>
#include <utility>

#include "schedule/choosers/segment_cost.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/search/reduction_order.hpp"

namespace fuse::schedule {
namespace {

DesignRules rules_of(const Segment& segment, const KernelChoices& choices, std::size_t phase,
                     const SearchOptions& options) {
  const Choices& own = choices.phases[phase];
  DesignRules rules{.grid_barriers = options.grid_barriers, .registers = own.registers};
  if (options.keep_order) rules.keep = own;
  if (segment.phases.size() == 1) return rules;
  rules.one_launch = segment.horizontal() || segment.regional();
  rules.threads = choices.block_threads();
  rules.blocks = choices.blocks;
  return rules;
}

/// The seconds of one phase among those of a kernel with barriers, read off a kernel that runs it twice.
double seconds_among_others(const ir::Graph& graph, const Segment& segment, const KernelChoices& choices,
                            std::size_t phase, const Target& target) {
  Segment twice = segment;
  twice.phases = {segment.phases[phase], segment.phases[phase]};
  const KernelChoices both{.phases = {choices.phases[phase], choices.phases[phase]},
                           .blocks = choices.blocks};
  const double between = target.barrier_seconds - target.launch_seconds;
  return (segment_seconds(graph, twice, both, target) - between) / 2;
}

/// Memory takes as long for what the kernel reads and stores, whatever its blocks do.
double least_of_memory(const ir::Graph& graph, const Segment& segment, const Target& target) {
  Phase all{.root = segment.root, .inputs = segment.inputs, .results = segment.results};
  return target.launch_seconds + static_cast<double>(moved_bytes(graph, all)) / target.bandwidth;
}

}  // namespace

DesignProblem::DesignProblem(const ir::Graph& graph, const Segment& segment, KernelChoices others,
                             std::size_t phase, const Target& target, const SearchOptions& options)
    : graph_(graph),
      segment_(segment),
      others_(std::move(others)),
      phase_(phase),
      target_(target),
      designs_(graph, segment.phases[phase], target,
               options.numbers ? *options.numbers : usual_numbers(graph, segment.phases[phase], target),
               rules_of(segment, others_, phase, options)),
      order_(options.keep_order
                 ? std::optional(reduction_order(graph, segment.phases[phase], others_.phases[phase]))
                 : std::nullopt) {
  if (segment.phases.size() == 1) return;
  if (segment.regional()) slices_ = slices_of(graph, segment.phases);
  if (segment.regional() || segment.horizontal()) {
    floor_ = is_cpu(target) ? target.launch_seconds : least_of_memory(graph, segment, target);
  } else {
    rest_ = seconds_of_kernel(others_) - seconds_among_others(graph, segment, others_, phase, target);
  }
}

double DesignProblem::bound(const Prefix& prefix) const {
  // The phases of a regional kernel pass values on in shared memory, which the phase alone would move.
  if (segment_.regional()) return floor_;
  return std::max(floor_, rest_ + designs_.bound(prefix));
}

double DesignProblem::seconds_of_kernel(const KernelChoices& choices) const {
  if (!slices_) return segment_seconds(graph_, segment_, choices, target_);
  return regional_seconds(graph_, segment_, choices, *slices_, shared_bytes(graph_, segment_, choices),
                          target_);
}

KernelChoices DesignProblem::choices(const Prefix& design) const {
  KernelChoices all = others_;
  all.phases[phase_] = designs_.choices(design);
  return all;
}

std::optional<double> DesignProblem::cost(const Prefix& design, double below) const {
  const KernelChoices all = choices(design);
  if (order_ && reduction_order(graph_, segment_.phases[phase_], all.phases[phase_]) != *order_)
    return std::nullopt;
  const double seconds = seconds_of_kernel(all);
  if (!(seconds < below) || !misfit(graph_, segment_, all, target_).empty()) return std::nullopt;
  return seconds;
}

}  // namespace fuse::schedule
