// What random inputs should be like, so that a check sees numbers and not NaN.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::fusec {

/// By node: whether its elements should be above 0. An op whose operand has to be positive asks for that
/// (log, sqrt, the base of pow, a divisor), and the wish passes from a value to its operands through ops
/// whose results are positive where their operands are: movement, sums, products, maxima. It ends at
/// differences, and at squares, which need no help.
std::vector<bool> wished_positive(const ir::Graph& graph);

}  // namespace fuse::fusec
