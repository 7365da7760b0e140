// Nest rules: which loops a segment can have. A nest that they take, the lowering can do; what they refuse,
// they refuse with a reason (docs/nests.md has the table).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/graph.hpp"
#include "schedule/choices.hpp"
#include "schedule/segment.hpp"
#include "schedule/target.hpp"

namespace fuse::schedule {

/// Where in a list a split of its dim and level stands, from the outermost on; none: no list has one.
/// Lanes of both dims have one place, in any order.
std::optional<int> place_of(const Split&);

/// Why no kernel can run the segment, as its choices stage it, by the loops `choices.splits`; empty: one can.
std::string defect_of_loops(const ir::Graph&, const Segment&, const Choices&, const Target&);

}  // namespace fuse::schedule
