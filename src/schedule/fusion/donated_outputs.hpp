// Outputs with donors that are no updates: their step writes them into the donor's memory, where its old
// contents are read before, or by the same thread element by element (docs/in-place.md).
//
// Before:  output now = %3 into %p, segment {%1 %2 %3} reads {%p %g}       a copy into %p at the end
// After:   the segment's kernel reads element i of %p and then writes it
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/partition.hpp"

namespace fuse::schedule {

/// Notes in the partition which of the outputs that update nothing are in place, orders its segments so, and
/// says of each of the others why it is not. Segments are whole: nothing is fused after this. It is near
/// linear.
void place_donated_outputs(const ir::Graph&, const ir::Decide&, Partition&);

/// Why the phase cannot write `result` over `old`, which it reads: only kernels that compute each element
/// from the elements at the same position can. Empty: it can.
std::string why_not_over(const ir::Graph&, const Partition&, const Segment&, ir::NodeId result,
                         ir::NodeId old);

}  // namespace fuse::schedule
