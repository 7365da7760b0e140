// Positive values: those that no rounding takes to 0 or below it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::runtime::reference {

/// For each node, whether its elements are above 0, whatever the inputs are and however ops round, unless
/// they underflow or are NaN: exponentials, sums of them, what is not negative plus a positive constant. The
/// denominator of a softmax is.
std::vector<bool> positive_nodes(const ir::Graph&);

}  // namespace fuse::runtime::reference
