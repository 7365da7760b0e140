// Type rules of the ops: used by the builder, the parser and the verifier alike.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// The largest rank of any type.
inline constexpr std::size_t max_rank = 32;

/// The result type of an op, or a user Error (shape_mismatch, dtype_mismatch, invalid_argument,
/// invalid_extent) with op, operand types, `at` and a hint. `declared` is the type that the builder or the
/// text states; ops whose result the operands do not determine (constant, iota, broadcast_in_dim, reshape,
/// convert, input, parameter) take it, after checking; matmul takes its dtype from it (the operands' or f32).
/// Elsewhere it may be null, and must agree if given.
///
/// A rule relates extents: of sibling operands, of a reshape's two sides, of a slice and its operand. What
/// the forms and ranges of the extents leave open is an error where `needs` is null, and else appended to it:
/// analysis::Facts proves it, or a guard checks it at run time. What they disprove is always an error.
Type infer_type(Op op, std::span<const Type> operands, const Attr& attr, const Type* declared,
                const SourceLocation& at, std::vector<DimRelation>* needs = nullptr);

}  // namespace fuse::ir
