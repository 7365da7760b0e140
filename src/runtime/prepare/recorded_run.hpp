// A run as decisions have it: what prepare makes of them, and what is written of a run to be had again.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "plan/run_decision.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse::runtime {

/// The program's choices for the tasks of a run, which are the steps that have work. Recorded lists name the
/// plan's steps: where kernels were replaced by their fallback launches, the cost model decides. Throws
/// invalid_argument for an order that is impossible for these dims.
schedule::StreamChoices stream_choices_of(const Prepared::Impl& made,
                                          const std::vector<schedule::Task>& tasks);

/// How the runs of a workspace proceed: its mode, and order and streams of the plan's steps. Those without
/// work come as soon as they can. No lists where kernels were replaced by their fallback launches.
schedule::RunDecision run_decision_of(const Workspace&);

}  // namespace fuse::runtime
