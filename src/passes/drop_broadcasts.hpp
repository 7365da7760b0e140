// A broadcast or a reshape to a type that is proven to be the operand's own is removed.
//
// Before:  graph @g(%x: f32[B, 4], %y: f32[B, 4]) -> (z: f32[B, 4]) where B in [1, 64]
//              { %2 = broadcast_in_dim %y {dims = [0, 1]} : f32[B, 4] %3 = reshape %2 : f32[B, 4]
//                %4 = add %x, %3 : f32[B, 4] return z = %4 }
// After:   graph @g(%x: f32[B, 4], %y: f32[B, 4]) -> (z: f32[B, 4]) where B in [1, 64]
//              { %2 = add %x, %y : f32[B, 4] return z = %2 }
//
// They come from x + y of f32[B, 4] and f32[T, 4]: whoever built the graph repeated y along T, and B = T is a
// fact. Runs after canonical_dims, which makes equal extents equal forms, and before common subexpressions.
// Leaves what it passes over dead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph drop_broadcasts(const Graph&);

}  // namespace fuse::ir
