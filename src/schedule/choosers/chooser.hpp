// Chooser: who decides how a kernel runs: the cost model, AStitch's printed rules, fixed choices, or a
// search. It is handed to everything that judges a kernel or makes one, so that no kernel is judged by
// choices that it will not run with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// The choices of a kernel segment; none where one kernel cannot run it. A pure function: equal segments
/// (canonical.hpp) get equal choices, and only one of them is asked for.
using Chooser = std::function<std::optional<KernelChoices>(const ir::Graph&, const Segment&, const Target&)>;

/// By the cost model (model_choices.hpp).
Chooser cost_model();
/// As AStitch prints it (astitch_choices.hpp); by the cost model what that has no rule for.
Chooser astitch_rules();
/// What `inner` chooses, but no blocks wait for each other and none stay: each part is a launch of its own.
Chooser without_grid_barriers(Chooser inner);
/// What `inner` chooses, but one block has a row: other compilers split no reduction over two launches.
Chooser without_splits(Chooser inner);

/// The choices with what they cost by the cost model.
std::optional<Chosen> chosen_by(const Chooser&, const ir::Graph&, const Segment&, const Target&);

}  // namespace fuse::schedule
