// Moves reshapes from between a reduction and what is computed from it to after that, where they are views of
// what is stored. All of it then has the dims of the reduction's loops, and one kernel can walk them
// (docs/stitching.md). BladeDISC, 4.2 carries group-dims and tile-dims through reshapes instead, to the same
// end.
//
// Before:  graph @g(%x: f32[64, 32], %w: f32[8, 8, 32]) -> (y: f32[8, 8, 32]) {
//   %2 = reduce_max %x {dims = [1]} : f32[64]  %3 = broadcast_in_dim %2 {dims = [0]} : f32[64, 32]
//   %4 = sub %x, %3 : f32[64, 32]  %5 = reshape %4 : f32[8, 8, 32]  %6 = mul %5, %w : f32[8, 8, 32]
//   return y = %6 }
// After:   graph @g(%x: f32[64, 32], %w: f32[8, 8, 32]) -> (y: f32[8, 8, 32]) {
//   %2 = reduce_max %x {dims = [1]} : f32[64]  %3 = broadcast_in_dim %2 {dims = [0]} : f32[64, 32]
//   %4 = sub %x, %3 : f32[64, 32]  %5 = reshape %w : f32[64, 32]  %6 = mul %4, %5 : f32[64, 32]
//   %7 = reshape %6 : f32[8, 8, 32]  return y = %7 }
//
// A reshape merges or splits groups of dims. It passes element-wise ops; a reduction of whole groups, which
// then reduces the old dims; and a broadcast that inserts no dim inside a group. No arithmetic is done
// otherwise or twice.
// Leaves what it replaces dead. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph sink_reshapes(const Graph&);

}  // namespace fuse::ir
