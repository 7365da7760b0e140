// SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/chooser.hpp"

#include <utility>

#include "schedule/choosers/astitch_choices.hpp"
#include "schedule/choosers/cpu_choices.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/choosers/segment_cost.hpp"

namespace fuse::schedule {
namespace {

/// The chooser whose choices for each phase are changed by `change`.
template <class Change>
Chooser changed(Chooser inner, Change change) {
  return [inner = std::move(inner), change](const ir::Graph& graph, const Segment& segment,
                                            const Target& target) {
    std::optional<KernelChoices> choices = inner(graph, segment, target);
    if (choices) {
      for (Choices& phase : choices->phases) change(phase);
    }
    return choices;
  };
}

}  // namespace

Chooser cost_model() {
  return [](const ir::Graph& graph, const Segment& segment, const Target& target) {
    return is_cpu(target) ? cpu_choices(graph, segment, target) : model_choices(graph, segment, target);
  };
}

Chooser astitch_rules() {
  return [](const ir::Graph& graph, const Segment& segment, const Target& target) {
    std::optional<KernelChoices> printed = astitch_choices(graph, segment, target);
    return printed ? printed : model_choices(graph, segment, target);
  };
}

Chooser without_grid_barriers(Chooser inner) {
  return changed(std::move(inner), [](Choices& phase) { phase.blocks = 0; });
}

Chooser without_splits(Chooser inner) {
  return changed(std::move(inner), [](Choices& phase) {
    if (!splits_rows(phase)) return;
    phase.blocks = 0;
    phase.set('c', Level::grid, 1).set('c', Level::cluster, 1);
  });
}

std::optional<Chosen> chosen_by(const Chooser& chooser, const ir::Graph& graph, const Segment& segment,
                                const Target& target) {
  std::optional<KernelChoices> choices = chooser(graph, segment, target);
  if (!choices) return std::nullopt;
  const double seconds = segment_seconds(graph, segment, *choices, target);
  return Chosen{std::move(*choices), seconds};
}

}  // namespace fuse::schedule
