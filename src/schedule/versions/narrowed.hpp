// Graphs under more facts: what a version is made from. Nodes keep their numbers.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/relation.hpp>
#include <span>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

/// The graph whose dims satisfy the relations, too: its symbols have the ranges and factors that follow, and
/// keep their hints; one outside of its range becomes the nearest end of it. Throws contradiction where no
/// dims do.
ir::Graph narrowed(const ir::Graph&, std::span<const DimRelation>);

/// The graph whose symbols have the ranges that `range` makes of theirs, in every extent and assumption.
ir::Graph with_ranges(const ir::Graph&, const std::function<DimRange(const ir::Symbol&)>& range);

}  // namespace fuse::schedule
