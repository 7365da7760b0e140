// The reference evaluator: runs a graph op by op on the CPU. What every device is compared with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "eval/bounds/reference_tensor.hpp"
#include "eval/bounds/rounding.hpp"
#include "ir/graph/ir_graph.hpp"
#include "tensors/host_tensor.hpp"

namespace fuse::runtime {

/// Tensors by input or parameter name. Names that the graph does not have are ignored.
using Values = std::map<std::string, HostTensor>;

struct ReferenceResult {
  std::map<std::string, ReferenceTensor> outputs;
};

/// Evaluates a verified graph; `dims` gives the value of each symbol.
///
/// exact: floats are double throughout. A convert between floating types does nothing, and constants and
/// inputs are what their dtype holds; so the result differs from the true one by double's rounding alone, and
/// the caller rounds it to the output's dtype, once. A comparison or a truncation sees exact values.
///
/// wide: exact, but in Wide instead of double where the graph has an f64.
///
/// same_type: every op's result is rounded once to its dtype. Sums and products of f16, bf16 and f32 (matmul
/// too) accumulate one element after another in f32, those of f64 in f64. The form for integers, comparisons
/// and masks, where a rounding decides. In all, i64 and i32 wrap, and results do not depend on the number of
/// threads.
///
/// `variant` (for same_type) picks among the evaluations that a right device may make. 0 is the one above.
/// Any other number takes the terms of sums and products in an order of its own, moves sums of floats by what
/// their roundings are likely to add up to (drawn_sum.hpp), and results of functions that the op table does
/// not round correctly by a random part of the table's ulps. The same number gives the same values.
///
/// A value is freed after its last use, an input is widened just before its first. `progress` is called on
/// the calling thread after each op that an output needs.
///
/// Throws user Errors: unbound (an input or dim without a value), dtype_mismatch, shape_mismatch or
/// buffer_size (a value that is not what the graph says), invalid_extent (a dim outside of its range, a slice
/// outside of its operand); runtime out_of_memory.
ReferenceResult evaluate(const ir::Graph& graph, const Values& inputs,
                         const std::function<std::int64_t(std::string_view)>& dims, Precision precision,
                         const std::function<void(std::size_t done, std::size_t total)>& progress = {},
                         std::uint64_t variant = 0);

struct TogetherResult {
  ReferenceResult exact;                       ///< the result of Precision::wide
  std::vector<ReferenceResult> evaluations{};  ///< the results of Precision::same_type: variants 0, 1, ..
  bool undecided = false;  ///< an op decided by a value that errors may move past where it decides otherwise
};

/// An exact evaluation and, op by op beside it, those that right devices may make: variant 0, then `steady`
/// ones that decide as the exact one wherever errors leave a decision open, and `diverse` ones that decide
/// such at random (jumps.hpp). With neither, `undecided` is judged by the errors of variant 0 alone,
/// generously. Throws what `evaluate` throws. It holds the live values of all evaluations at a time.
TogetherResult evaluate_together(
    const ir::Graph& graph, const Values& inputs, const std::function<std::int64_t(std::string_view)>& dims,
    std::size_t steady, std::size_t diverse,
    const std::function<void(std::size_t done, std::size_t total)>& progress = {});

}  // namespace fuse::runtime
