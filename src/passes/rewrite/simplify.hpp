// Algebraic simplification: the rules of passes/rewrite/rewrite_rules.cpp, applied until none matches.
//
// Before:  %1 = constant {value = 2.0} : f32[4]  %2 = pow %x, %1 : f32[4]
//          %3 = neg %2 : f32[4]  %4 = neg %3 : f32[4]
// After:   %1 = mul %x, %x : f32[4]
//
// A rule keeps every bit, or, where the table allows the op ulps, the table's bound; relaxed rules, which
// keep only what an expression means for real numbers, apply where the options say so.
//
// After fold_constants, since many rules ask for a constant, and after duplicates are gone, since others ask
// for the same value twice; before align_layouts, which finds transposes of transposes composed. Leaves what
// it replaces dead. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

struct SimplifyOptions {
  bool relaxed_rounding = false;
};

Graph simplify(const Graph&, const SimplifyOptions& = {});

}  // namespace fuse::ir
