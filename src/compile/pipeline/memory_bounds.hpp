// The most bytes that values of a plan have, whatever the dims are: what a workspace for all dims is planned
// with (runtime/prepare/fixed_layout.hpp). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/plan.hpp"

namespace fuse {

/// For Plan::most_bytes, from the ranges and assumptions of the graph that the plan was made of. Values that
/// one version alone uses are bounded by what leads to it, too. Empty where the graph has no symbols.
std::vector<std::int64_t> most_bytes_of(const schedule::Plan&, const ir::Graph&);

}  // namespace fuse
