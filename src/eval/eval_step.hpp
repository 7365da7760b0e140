// Step: one op of a graph with its operands' values, and the functions that compute its result, one for each
// way a result depends on operands. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "eval/bounds/reference_tensor.hpp"
#include "eval/bounds/rounding.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::runtime::reference {

struct Step {
  const ir::Graph& graph;
  const ir::Node& node;
  Precision precision;
  Hold floats;            ///< what floating values of this evaluation are held in
  std::uint64_t variant;  ///< the variant of `evaluate`; 0: none
  /// The variant of the op's sums: two ops that add the same terms add them in other orders. 0: none.
  std::uint64_t sums;
  std::function<std::int64_t(const Dim&)> value_of;  ///< the value of a dim expression
  std::vector<std::int64_t> shape;                   ///< the result's shape
  std::vector<const ReferenceTensor*> operands;
  ReferenceTensor* dying = nullptr;  ///< operand 0 when nothing reads it again: its storage may be taken

  const ReferenceTensor& operand(std::size_t index) const { return *operands[index]; }
  DType dtype() const { return node.type.dtype; }
  bool rounds() const { return precision == Precision::same_type; }
  /// Calls f by the type that holds elements of a dtype.
  template <class F>
  decltype(auto) with_storage(DType of, F&& f) const {
    return runtime::with_storage(of, floats, std::forward<F>(f));
  }

  ReferenceTensor make() const { return ReferenceTensor(dtype(), shape, floats); }
  /// A tensor for the result of an op that reads an element no later than it writes it: the storage of the
  /// dying operand where that fits. Take spans of the operands first.
  ReferenceTensor make_in_place() const;
  /// What a graph cannot know before run time did not hold: a user Error with the op, its types and line.
  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint = {}) const;
};

ReferenceTensor evaluate_elementwise(const Step&);  ///< rows FUSE_ELEMENTWISE
ReferenceTensor evaluate_select(const Step&);
ReferenceTensor evaluate_convert(const Step&);
ReferenceTensor evaluate_reduction(const Step&);  ///< rows FUSE_REDUCTION
ReferenceTensor evaluate_movement(const Step&);   ///< trait movement
ReferenceTensor evaluate_matmul(const Step&);
ReferenceTensor evaluate_contraction(const Step&);
ReferenceTensor evaluate_scan(const Step&);
ReferenceTensor evaluate_random(const Step&);
ReferenceTensor evaluate_custom(const Step&);

}  // namespace fuse::runtime::reference
