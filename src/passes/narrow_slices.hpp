// Makes slices of concats slices of the operands that they read. So what reads a part of a stack of results
// waits for the steps that make this part alone, and no kernel asks in which operand an element lies.
//
// Before:  %4 = concat %1, %2, %3 {axis = 0} : f32[3, 64]   %5 = slice %4 [2:3] : f32[1, 64]
// After:   %5 = slice %3 [0:1] : f32[1, 64]
//
// Before simplify, which takes away slices of all of a value and concats of one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph narrow_slices(const Graph&);

}  // namespace fuse::ir
