// The signature of a graph as its user built it: errors of prepare name its lines.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph.hpp"
#include "runtime/signature.hpp"

namespace fuse::runtime {

/// `guards`: of the same graph.
Signature signature_of(const ir::Graph& graph, std::vector<analysis::Guard> guards);

}  // namespace fuse::runtime
