// RunDecision: how the steps of a plan are run, as a line of a file of decisions has it.
//
//   run {mode = graph, order = 0 2 1 3, streams = 0 0 1 0}
//
// Steps are those of the plan, whatever the dims are. prepare leaves out those that have no work for its dims
// and makes StreamChoices of the rest (stream_plan.hpp). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace fuse::schedule {

/// What is left empty is decided by cost.
struct RunDecision {
  ExecutionMode mode = ExecutionMode::automatic;  ///< what `automatic` becomes; automatic: what costs say
  std::vector<std::uint32_t> order{};             ///< in which the steps are dispatched
  std::vector<std::uint32_t> streams{};           ///< of each step
  int line = 0;                                   ///< of the text; 0: of none
};

/// Why steps cannot be run so.
struct RunMisfit {
  std::string what{}, hint{};
};

/// What can be said before the dims are known.
std::optional<RunMisfit> misfit(const RunDecision&, const Plan&);
/// Of one step that stands before another in the order.
RunMisfit misfit_of_order(const Plan&, std::uint32_t early, std::uint32_t late);

/// "mode = graph, order = 0 2 1 3, streams = 0 0 1 0"
std::string to_string(const RunDecision&);
/// Throws Error with code parse: the line, the key, and what would be right.
RunDecision parse_run(std::string_view text, int line);

}  // namespace fuse::schedule
