// Turns a concat of many operands into concats of concats, at most 32 wide, so that no kernel needs more
// parameters than a launch takes.
//
// Before:  %9 = concat %a, %b, .. (40 operands) {axis = 0} : f32[40]
// After:   %9 = concat %a, .. (32) : f32[32]  %10 = concat .. (8) : f32[8]  %11 = concat %9, %10 {axis = 0} :
// f32[40]
//
// After duplicates are gone, before the partition, which stores the inner ones where a segment grows too
// wide. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

Graph split_concats(const Graph&);

}  // namespace fuse::ir
