// Turns a contraction into the matmul that it is, between transposes and reshapes.
//
// Before:  %2 = contraction %a, %b {batch_a = [1], batch_b = [0], contract_a = [2], contract_b = [1]}
//                                                    a: f32[m, B, k]  b: f32[B, k, n]
// After:   %2 = transpose %a {dims = [1, 0, 2]} : f32[B, m, k]
//          %3 = matmul %2, %b : f32[B, m, n]
//
// An operand whose dims stand as the matmul wants them, or with its last two groups swapped, is not moved.
// Before common subexpressions, so that equal transposes of several contractions become one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph open_contractions(const Graph&);

}  // namespace fuse::ir
