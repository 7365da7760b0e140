// The program of a compiled graph: what the stages of the compiler leave for runs.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"
#include "plan/program.hpp"

namespace fuse::runtime {

/// `graph` is what the user built: errors of prepare name its lines. Throws an internal Error where the plan
/// has other inputs, parameters and outputs than the graph.
Program program_of(const ir::Graph& graph, const Compiled&);

/// "reduce_sum in layer_norm.mean; sub, exp in softmax": ops by scope, at most `most` of them.
std::string describe_ops(const ir::Graph&, const std::vector<ir::NodeId>& nodes, std::size_t most);

}  // namespace fuse::runtime
