// The signature of a graph as its user built it: errors of prepare name its lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"
#include "plan/signature.hpp"

namespace fuse::runtime {

/// `guards` are those of the same graph.
Signature signature_of(const ir::Graph& graph, std::vector<ir::Guard> guards);

}  // namespace fuse::runtime
