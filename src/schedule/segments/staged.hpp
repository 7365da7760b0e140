// A phase as its choices run it.
//
// Before:  stages %2 reduce_sum (across the rows) | %3 convert      a thread walks down a column
// After:   column stages %2 reduce_sum | %3 convert                 blocks share the rows
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// The phase with its reductions as outer ones, where all of them are across the rows and only values of
/// columns are made from them; else none. Rows are then what is reduced, and a row is what is kept.
std::optional<Phase> across_rows(const ir::Graph&, const Phase&);

/// The phase with the stages that the choices ask for: online sums (online_softmax.hpp), or reductions across
/// the rows.
Phase staged(const ir::Graph&, const Phase&, const Choices&);

}  // namespace fuse::schedule
