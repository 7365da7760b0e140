// Computes what only constants determine. A constant has one value in every element, so its repetitions,
// moves and parts are constants too, and element-wise ops are evaluated for one element.
//
// Before:  %1 = constant {value = 2.0} : f32[]  %2 = broadcast_in_dim %1 {dims = []} : f32[4]
//          %3 = sqrt %2 : f32[4]  %4 = mul %x, %3 : f32[4]
// After:   %1 = constant {value = 0x1.6a09e6p+0} : f32[4]  %2 = mul %x, %1 : f32[4]
//
// The value is that of the reference evaluator in the graph's own types: for an op that the table allows no
// ulp, bit for bit what a kernel computes. An op with ulps is evaluated in double and rounded once, which
// errs by little more than half an ulp of f32, and by the one ulp of the C library's function for f64: inside
// the table's bound, though a kernel may differ in the last bits. A reduction is folded only where every
// order of combining gives the same bits. Random numbers, custom calls and contractions are never folded. A
// NaN is stored as the one that `nan` spells.
//
// Before simplify, whose patterns look for constants. Leaves the operands dead.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph fold_constants(const Graph&);

/// The value of a node, whose operands are of the graph, if constants determine it.
std::optional<ConstantAttr> folded(const Graph&, const Node&);

}  // namespace fuse::ir
