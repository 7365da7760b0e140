// RunDecision: how the steps of a plan are run, as a line of a file of decisions has it.
//
//   run {mode = graph, order = 0 2 1 3, streams = 0 0 1 -}
//
// Steps are those of the plan, whatever the dims are. prepare leaves out those without work for its dims, and
// makes StreamChoices from the rest (stream_plan.hpp). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/executable.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.hpp"

namespace fuse::schedule {

/// In RunDecision::streams, a step whose stream the cost model decides: '-' in the text.
inline constexpr std::uint32_t open_step = ~std::uint32_t{0};

/// The cost model decides what is left empty.
struct RunDecision {
  ExecutionMode mode = ExecutionMode::automatic;  ///< what `automatic` becomes; automatic: by cost
  std::vector<std::uint32_t> order{};             ///< the order in which steps are dispatched
  std::vector<std::uint32_t> streams{};           ///< stream per step, or open_step
  int line = 0;                                   ///< line of the text; 0: none
};

/// Why the steps cannot run in this way.
struct RunMisfit {
  std::string what{}, hint{};
};

/// The misfits that can be found before the dims are known.
std::optional<RunMisfit> misfit(const RunDecision&, const Plan&);
/// The misfit of a step that comes before another in the order.
RunMisfit misfit_of_order(const Plan&, std::uint32_t early, std::uint32_t late);

/// "mode = graph, order = 0 2 1 3, streams = 0 0 1 0"
std::string to_string(const RunDecision&);
/// Throws Error with code parse: the line, the key, and what would be right.
RunDecision parse_run(std::string_view text, int line);

}  // namespace fuse::schedule
