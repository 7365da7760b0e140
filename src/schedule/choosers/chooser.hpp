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

/// The choices of a kernel segment; none where one kernel cannot run it. It is a pure function: equal
/// segments (canonical.hpp) get equal choices, and it is asked about only one of them.
using Chooser = std::function<std::optional<KernelChoices>(const ir::Graph&, const Segment&, const Target&)>;

/// The chooser by the cost model (model_choices.hpp).
Chooser cost_model();
/// The chooser by AStitch's printed rules (astitch_choices.hpp), and by the cost model where it has none.
Chooser astitch_rules();
/// What `inner` chooses, but no blocks wait for each other and none stay: each section is a launch of its
/// own.
Chooser without_grid_barriers(Chooser inner);
/// What `inner` chooses, but with one block per row: other compilers split no reduction over two launches.
Chooser without_splits(Chooser inner);

/// The choices with what they cost by the cost model.
std::optional<Chosen> chosen_by(const Chooser&, const ir::Graph&, const Segment&, const Target&);

}  // namespace fuse::schedule
