// Cooperative fusion: segments of one group become phases of one cooperative kernel, with a grid barrier
// between where one reads what another stores: AStitch's global scheme (3.2.2). They pass values through
// memory.
//
// Before:  segment {add sum div pow}   segment {bcast add sum bcast mul}, which reads pow
// After:   segment {..}, phases  sum | pow  ||  sum | mul
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/cut.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Rewrites `cut`, which may already have stitched segments. A cooperative kernel saves launches and no
/// traffic. So a barrier has to take less than a node of a replayed graph, and all kernels together have to
/// gain what zeroing the counters takes; those that do not are returned with both times. `always`: as the
/// paper does.
std::vector<Refusal> fuse_cooperatively(const ir::Graph&, const CutRules&, const Chooser&, bool always,
                                        const Target&, Partition& cut);

}  // namespace fuse::schedule
