// The values that the next variable of a design may have, by the values of those before it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/search/design_facts.hpp"
#include "schedule/search/partial_design.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// What a kernel asks of the designs of one of its phases.
struct DesignRules {
  bool grid_barriers = true;  ///< blocks may wait for each other
  bool one_launch = false;    ///< the phase is a range of blocks, or a part of each block
  int threads = 0;            ///< of a block, where phases have to have equal ones; 0: any
  int blocks = 0;             ///< of the kernel, where its phases run one after another; 0: it has one phase
  int registers = 0;          ///< Choices::registers of all designs
  std::optional<Choices> keep{};  ///< values are added in the order of these choices (reduction_order.hpp)
};

struct DesignContext {
  const ir::Graph& graph;
  const Target& target;
  const DesignNumbers& numbers;
  const DesignRules& rules;
};

/// For each variable but the rewrite. Most of what no kernel can have is left out, and so is what the cost
/// model does not account for (docs/search.md); what is left of the first, `misfit` refuses.
std::vector<DesignOption> options_of_next(const DesignContext&, const DesignFacts&, const PartialDesign&);

}  // namespace fuse::schedule
