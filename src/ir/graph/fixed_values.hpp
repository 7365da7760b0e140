// Which values are the same in every run.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// For each node, whether it follows from parameters and constants alone, with static extents, by ops that
/// kernels compute (no contraction, no custom call). Such a value can be made once, when the parameters are
/// bound. Linear.
std::vector<bool> fixed_values(const Graph&);

}  // namespace fuse::ir
