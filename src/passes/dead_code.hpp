// Removes what no output needs. Inputs and parameters stay: they are the graph's signature, and come first,
// so that values have the numbers that the text form prints.
//
// Before:  graph @g(%x: f32[4]) -> (y: f32[4]) { %1 = exp %x : f32[4]  %2 = neg %x : f32[4]  return y = %2 }
// After:   graph @g(%x: f32[4]) -> (y: f32[4]) { %1 = neg %x : f32[4]  return y = %1 }
//
// First and last of the passes: the others need not look at dead nodes, and leave some.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph dead_code(const Graph&);

}  // namespace fuse::ir
