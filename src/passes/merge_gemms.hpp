// SPDX-License-Identifier: Apache-2.0
// Makes one GEMM of several that share an operand (concatenating the others), and one batched GEMM of
// several of one shape (BladeDISC, section 4.3).
//
// Before:
//   graph @g(%x: f32[B, 4], param %v: f32[4, 2], param %w: f32[4, 3]) -> (y: f32[B, 2], z: f32[B, 3])
//       where B in [1, 9] {
//     %3 = matmul %x, %v : f32[B, 2]
//     %4 = matmul %x, %w : f32[B, 3]
//     %5 = neg %3 : f32[B, 2]
//     %6 = neg %4 : f32[B, 3]
//     return y = %5, z = %6
//   }
// After:
//   graph @g(%x: f32[B, 4], param %v: f32[4, 2], param %w: f32[4, 3]) -> (y: f32[B, 2], z: f32[B, 3])
//       where B in [1, 9] {
//     %3 = concat %v, %w {axis = 1} : f32[4, 5]
//     %4 = matmul %x, %3 : f32[B, 5]
//     %5 = slice %4 {starts = [0, 0], limits = [B, 2], strides = [1, 1]} : f32[B, 2]
//     %6 = slice %4 {starts = [0, 2], limits = [B, 5], strides = [1, 1]} : f32[B, 3]
//     %7 = neg %5 : f32[B, 2]
//     %8 = neg %6 : f32[B, 3]
//     return y = %7, z = %8
//   }
//
// Members of a group have the same flags, types and depth, counted in matmuls from the inputs: no path leads
// from one to another, nor, through other groups, back. Extents are equal as expressions, so symbols prove
// what numbers would.
//
// What was merged is grouped again, as long as a group has a member that the round before merged: the gates
// of each step of a recurrent layer share the step's input, and the steps then share the concat of the gates'
// weights, which is one node, since groups with equal parts share it. Groups of 32, the most parts of a
// concat, are joined in the same way.
//
// A group is merged where it saves more than it adds, in bytes at the dims' hints, a launch counting as
// `launch_bytes`. Saved: for each member but one a launch, and a read of the shared operand. Added: operands
// that are concatenated are read and written, in a launch of their own, unless parameters alone make them
// (those are concatenated once: docs/gemm.md); a result that is an output or a GEMM's or custom call's
// operand as it is must be copied out, in a launch. Results that kernels read cost nothing: a slice is
// computed inside its consumer. A member that adds more than it saves stays alone.
//
// Of a group that is not merged, chunks may be (Astra, 4.4.1): where questions are answered, it is asked of
// each 2, 4, 8 .. neighbours, the most first. By cost the answer is no. Chunks of one group stay apart.
//
// Each element is the same sum of the same products; a GEMM library may add them in another order for another
// shape. After duplicates are gone, so that a shared operand is one node; before split_concats, which bounds
// what is concatenated here.
#pragma once

#include <cstdint>

#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"

namespace fuse::ir {

/// What a GPU moves in the microsecond that a launch costs at least: 4 TB/s.
inline constexpr std::int64_t launch_bytes = std::int64_t{4} << 20;

/// Near linear in the nodes for each round. There are at most as many rounds as the logarithm of the GEMMs to
/// base 2, since each round but the last has groups of groups. `decide` is asked once about each group that
/// can be merged, and about each chunk of those that are not.
Graph merge_gemms(const Graph&, const Decide& decide = {});

}  // namespace fuse::ir
