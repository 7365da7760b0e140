// The user's kernel of generated programs: the elements of its operand in the opposite order, in any dtype.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/graph/ir_graph.hpp"

namespace fuse::fuzz {

/// `number` makes the name: kernels of one batch stand in one text.
ir::CustomAttr turning_kernel(DType dtype, const Dim& elements, std::uint64_t number);
/// Gives the custom calls of a parsed graph their host function back, which text does not hold.
void attach_references(ir::Graph& graph);

}  // namespace fuse::fuzz
