// The line that a user could write so that the compiler knows more, where that is possible.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

#include "ir/graph/ir_graph.hpp"

namespace fuse::analysis {

/// "g.assume(equal(S, T));", for each relation one after the other. Empty where there are none, where one
/// of them has no symbols, or where they contradict what is known of the graph.
std::string assumption_line(const ir::Graph&, std::span<const DimRelation>);

}  // namespace fuse::analysis
