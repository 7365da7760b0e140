// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/kernel_designs.hpp"

#include <algorithm>
#include <limits>
#include <utility>

#include "schedule/search/design_bound.hpp"
#include "schedule/segments/online_softmax.hpp"
#include "schedule/segments/staged.hpp"

namespace fuse::schedule {

KernelDesigns::KernelDesigns(const ir::Graph& graph, const Phase& cut, const Target& target,
                             DesignNumbers numbers, DesignRules rules)
    : graph_(graph), target_(target), numbers_(std::move(numbers)), rules_(std::move(rules)) {
  const auto add = [&](bool online, bool across) {
    if (rules_.keep && (rules_.keep->online_softmax != online || rules_.keep->across != across)) return;
    DesignFacts facts = design_facts(graph, cut, online, across, target);
    if (!rules_.one_launch || !facts.columns) runs_.push_back(std::move(facts));
  };
  add(false, false);
  if (with_online_softmax(graph, cut)) add(true, false);
  if (across_rows(graph, cut)) add(false, true);
}

PartialDesign KernelDesigns::partial(const Prefix& prefix) const {
  PartialDesign design;
  for (const std::uint16_t index : prefix) design.take(options_of(design).at(index));
  return design;
}

std::vector<DesignOption> KernelDesigns::options_of(const PartialDesign& design) const {
  if (design.fixed > 0)
    return options_of_next({graph_, target_, numbers_, rules_}, runs_[design.rewrite], design);
  std::vector<DesignOption> options;
  for (std::size_t i = 0; i < runs_.size(); ++i) options.push_back({static_cast<int>(i)});
  return options;
}

Choices KernelDesigns::choices(const Prefix& prefix) const {
  const PartialDesign design = partial(prefix);
  return choices_of(runs_[design.rewrite], design, rules_.registers);
}

double KernelDesigns::bound(const Prefix& prefix) const {
  const PartialDesign design = partial(prefix);
  if (!prefix.empty())
    return design_bound(graph_, runs_[design.rewrite], design, numbers_, rules_.threads, target_);
  double least = std::numeric_limits<double>::infinity();
  for (const DesignFacts& facts : runs_)
    least = std::min(least, design_bound(graph_, facts, design, numbers_, rules_.threads, target_));
  return least;
}

}  // namespace fuse::schedule
