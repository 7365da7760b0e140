// Equal extents become one expression, everywhere in the graph, and symbols take the narrowest
// ranges and the largest factors known.
//
// Before:  graph @g(%x: f32[S0, 8]) -> (y: f32[S2, S3, 8])
//              where S0 in [0, 64], S2 in [1, 100], S3 in [2, 100] assuming S0 = S2 * S3
//              { %1 = reshape %x : f32[S2, S3, 8] return y = %1 }
// After:   graph @g(%x: f32[S2 * S3, 8]) -> (y: f32[S2, S3, 8])
//              where S0 in [2, 64], S2 in [1, 32], S3 in [2, 64] assuming S0 = S2 * S3
//              { %1 = reshape %x : f32[S2, S3, 8] return y = %1 }
//
// What the ops need and nothing proves (that B = T in x + y of f32[B] and f32[T]) joins the assumptions, so
// that a pass which removes the op does not lose the fact; guards check it. Runs after dead code removal,
// since a dead op's needs are no facts, and before all else: the other passes compare forms.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph canonical_dims(const Graph&);

}  // namespace fuse::ir
