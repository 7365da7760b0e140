// The shape of a reduction or a scan as loops: kept extents and reduced (scanned) extents, in operand order.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

struct LoopShape {
  std::vector<Dim> kept, reduced;
  std::vector<bool> is_reduced;  ///< per operand dim
  /// Whether the innermost operand dim longer than 1 is reduced: an inner reduction (APOLLO's form y), else
  /// an outer one.
  bool inner = true;
};
LoopShape loop_shape(const ir::Graph&, const ir::Node& node);

/// Whether it is a broadcast to the dims of the loops whose operand has dims that are reduced, and no others:
/// its elements are the same in each row.
bool repeats_in_rows(const ir::Graph&, const ir::Node&, const LoopShape&);

/// The last dim longer than 1, along which memory runs.
std::optional<std::size_t> innermost(const std::vector<Dim>&);

}  // namespace fuse::schedule
