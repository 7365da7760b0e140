// One maker a FUSE_OP row: it picks operands and attributes for a result of a wanted dtype. A row without one
// fails to compile. Element-wise rows and reductions share one each. A maker may throw what infer_type
// throws: then the op was not legal so, and is tried again. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "fuzz/grow/growing_graph.hpp"

namespace fuse::fuzz {

struct Maker {
  GrowingGraph& g;
  bool tamed = false;  ///< operands in a comfortable range: the op was refused for its result before

  /// Adds the op with `dtype` as its counted dtype (see counted_dtype).
  void make(ir::Op op, DType dtype);

 private:
  void elementwise(ir::Op op, DType dtype);
  void reduction(ir::Op op, DType dtype);
  std::vector<Dim> parts_of(const std::vector<Dim>& dims);
  std::vector<Tensor> starts(std::int64_t rank);
#define FUSE_OP(name, ...) void name(DType dtype);
#include <fuse/ops.def>
};

/// A compound function of the public API on values of `dtype` (floating).
void make_compound(GrowingGraph& g, DType dtype);

}  // namespace fuse::fuzz
