// Loops: the variables of Dali's search (2.3), one for each loop of each assignment.
//
//   max[b] = max(x[b, :])            b: blocks or threads   c: threads, since it is reduced
//   y[b, c] = exp(x[b, c] - max[b])  b: blocks or threads   c: threads, since it reads max out of order
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/dim.hpp>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// One loop of one assignment.
struct Loop {
  std::string name{};
  Dim extent{};
  bool may_be_blocks = true;
  bool may_be_threads = true;
  /// Earlier loops of the list, whose assignments it reads element by element along this extent.
  std::vector<std::size_t> descends_from{};
};

/// The loops of a kernel, in the order of its stages; a stage is an assignment, and has a loop for each of
/// its extents. A loop may not be blocks where it is reduced, or where the stage reads a value that another
/// stage stores and that does not have this extent: another block may have made that value (2.3, "read out of
/// order"). Extents of one element are no loops.
std::vector<Loop> loops_of(const ir::Graph&, const Segment&);

}  // namespace fuse::schedule
