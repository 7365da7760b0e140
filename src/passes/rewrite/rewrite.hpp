// rewrite: applies rules to every node of a graph, operands first.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "passes/rewrite/rewrite_rules.hpp"

namespace fuse::ir::algebra {

/// The graph with each rule applied wherever it matches, and with what became constant folded. Rules look at
/// operands only, so one pass from the operands on reaches the fixed point: a node is tried again only when a
/// rule has made it. Linear: at most 64 rules are applied for a node of the graph. New nodes have the scope
/// and line of the node that they replace; what is no longer used is left dead.
Graph rewrite(const Graph&, const std::vector<const Rule*>& rules);

}  // namespace fuse::ir::algebra
