// Stitching: segments of one group become stages of one kernel where each thread, or the warp or block around
// it, has what it needs of the others' values: AStitch's local and regional schemes (3.2.2, 4.3).
//
// Before:  segment {max}   segment {sub exp sum}   segment {sub exp div}
// After:   segment {max sub exp sum div}   stages max | sum | div
//
// All stages run over the loops of one reduction, the dominant: a value for each element, a value for each
// row, or a row reduced to a value. A stage reads another's value only through element-wise ops and
// broadcasts, at its own element or row. A value that no other segment reads is not stored.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/cut.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Rewrites `cut`. A group of several segments that would take longer as one kernel stays as it was; the
/// refusal that is returned says so, with both times.
std::vector<Refusal> stitch(const ir::Graph&, const CutRules&, const Chooser&, const Target&, Partition& cut);

}  // namespace fuse::schedule
