// A graph whose values are outputs too, for whoever looks inside of a run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// What the outputs are computed from, in order: inputs and parameters too.
std::vector<NodeId> live_values(const Graph& graph);

/// The graph with an output more for each.
Graph with_kept(const Graph& graph, const std::vector<NodeId>& values);
/// The name of that output; none of the graph's own has it.
std::string kept_name(const Graph& graph, NodeId value);

/// "%8 = log f32[4] in encoder.0"
std::string describe_value(const Graph& graph, NodeId value);

}  // namespace fuse::ir
