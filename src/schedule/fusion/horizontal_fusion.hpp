// Horizontal fusion: kernels that read nothing of each other become ranges of the blocks of one, without a
// barrier (docs/horizontal.md): the parallel fusion of APOLLO's Layer III across classes, AStitch's remote
// stitching.
//
// Before:  segment {q rms_norm}   segment {k rms_norm}
// After:   segment {..}, phases  q rms_norm beside k rms_norm
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/cut.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// The longest part of a horizontal kernel, in launches: a longer one gains about 6% of its time or less from
/// a saved launch.
inline constexpr double longest_part_in_launches = 16;

/// Rewrites `cut`, whose segments are stitched and know what they overwrite. Only segments that may run at
/// the same time in the longest chain of steps become one, so no chain becomes longer. Where all of them are
/// of one group and would gain nothing, they are returned with both times. It is linear in segments and what
/// they read, apart from the chooser, which is asked once for each different kernel.
std::vector<Refusal> fuse_horizontally(const ir::Graph&, const CutRules&, const Chooser&, const Target&,
                                       Partition& cut);

}  // namespace fuse::schedule
