// Costly rows: element-wise kernels in which a value that takes a costly op is repeated, as regional kernels
// that compute it first (AStitch, Fig. 5: the power before a broadcast).
//
// Before:  segment %6 add of [R, C]: a power of each row, for each of its elements
// After:   phase %4 pow of [R]  then  phase %6 add of [R, C], which reads it
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// The regional kernel of a segment; none where there is no such value, or no slices go through its phases.
std::optional<Segment> with_costly_rows_first(const ir::Graph&, const Segment&);

}  // namespace fuse::schedule
