// Which values need memory as they are.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// For each node, whether it is an output, or an operand of a contraction or a custom call, as it is or seen
/// through reshapes, which are views. Linear.
std::vector<bool> memory_values(const Graph&);

}  // namespace fuse::ir
