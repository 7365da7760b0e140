// Segments: what one kernel of today's code generation makes, one value per segment. A group with a reduction
// inside or with several results needs a stitching scheme; until there is one it is cut here, and the
// partition says so.
//
// Before:  group {max broadcast sub exp sum broadcast div}
// After:   segment {max}  segment {broadcast sub exp sum}  segment {broadcast sub exp broadcast div}
//
// Element-wise ops, broadcasts, transposes, slices and gathers are computed inside their consumers; a segment
// ends at a reduction, an output, a GEMM or its operand, and at a value that several segments would otherwise
// recompute from two or more large tensors. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/graph/question.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/views/views.hpp"

namespace fuse::schedule {

struct CutRules {
  bool groups_are_kernels = false;  ///< a value that another group reads is always stored
  bool costly_broadcast = false;    ///< a costly op ends a segment where it is broadcast
  bool recompute = false;           ///< nothing is stored to save computing it twice
  std::size_t max_inputs = 48;
  std::size_t argument_bytes = 4096;  ///< bytes that the arguments of a launch may take
  bool views = true;                  ///< values may lie in others' memory (views.hpp)
  double launch_bytes = 0;            ///< the traffic that costs as much as a launch
  ir::Decide decide{};                ///< asked wherever a cost decides
};

/// Whether it is a reduction, a scan, a GEMM or a user's kernel: nothing is computed after it in its segment.
bool ends_segment(const ir::Node&);

/// For each node, the node whose buffer holds it (through reshapes), or itself.
std::vector<ir::NodeId> storage_of(const ir::Graph&);

/// `group_of`: group per node, or no_group. The partition has no grouping yet. It is linear in nodes and
/// edges.
Partition cut_into_segments(const ir::Graph&, const std::vector<GroupId>& group_of, const CutRules&,
                            const analysis::Facts& facts = analysis::Facts());

}  // namespace fuse::schedule
