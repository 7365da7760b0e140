// Phase fusion: segments become phases of one kernel, which pass values through memory. Between them stands a
// barrier of the block, where each block needs its own slices alone (AStitch's regional scheme, 4.3), or its
// tile and a halo; or, for segments of one group, a barrier of the grid (its global scheme, 3.2.2).
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

/// Rewrites `cut`, which may already have stitched segments: makes regional kernels where they gain, and
/// returns those that do not, with both times. `horizontal`: kernels that stay apart may still share a launch
/// with others of their level (horizontal_fusion.hpp), so that one less saves nothing there.
std::vector<Refusal> fuse_regionally(const ir::Graph&, const CutRules&, const Chooser&, bool horizontal,
                                     const Target&, Partition& cut);

/// The same with cooperative kernels. A cooperative kernel saves launches and no traffic. So a barrier has to
/// take less than a node of a replayed graph, and all kernels together have to gain what zeroing the counters
/// takes. `always`: as the paper does.
std::vector<Refusal> fuse_cooperatively(const ir::Graph&, const CutRules&, const Chooser&, bool always,
                                        const Target&, Partition& cut);

}  // namespace fuse::schedule
