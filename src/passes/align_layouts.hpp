// Takes transposes away where another op can have the layout that they make: into the flags of a matmul,
// against another transpose with element-wise ops between them, or into the order of a matmul's operands,
// since (a b)^T = b^T a^T. One that only moves dims of extent 1 becomes a reshape, which is a view.
//
// Before:  graph @g(%x: f32[8, 4], %w: f32[8, 5], param %b: f32[5]) -> (y: f32[5, 4]) {
//   %3 = transpose %x {dims = [1, 0]} : f32[4, 8]  %4 = tanh %3 : f32[4, 8]  %5 = matmul %4, %w : f32[4, 5]
//   %6 = broadcast_in_dim %b {dims = [1]} : f32[4, 5]  %7 = add %5, %6 : f32[4, 5]
//   %8 = transpose %7 {dims = [1, 0]} : f32[5, 4]  return y = %8 }
// After:   graph @g(%x: f32[8, 4], %w: f32[8, 5], param %b: f32[5]) -> (y: f32[5, 4]) {
//   %3 = tanh %x : f32[8, 4]  %4 = matmul %w, %3 {transpose_a = true} : f32[5, 4]
//   %5 = broadcast_in_dim %b {dims = [0]} : f32[5, 4]  %6 = add %4, %5 : f32[5, 4]  return y = %6 }
//
// An op moves to the other side of a transpose only where that makes fewer transposes and nothing is computed
// twice. A transpose that a kernel reads through is index arithmetic there: it stays. No rounding changes:
// the same products are summed. After simplify, which composes transposes that meet. Leaves what it replaces
// dead. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph align_layouts(const Graph&);

}  // namespace fuse::ir
