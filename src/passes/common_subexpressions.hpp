// Nodes with the same op, operands, attributes and type become one: the first, with its scope and line.
// Operands of a commutative op may stand either way round.
//
// Before:  %1 = exp %x : f32[4]  %2 = exp %x : f32[4]  %3 = add %1, %2 : f32[4]
// After:   %1 = exp %x : f32[4]  %2 = add %1, %1 : f32[4]
//
// Before the partition: compound functions repeat constants and broadcasts. Leaves the duplicates dead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph common_subexpressions(const Graph&);

}  // namespace fuse::ir
