// Costly columns: values that are the same in each row and take a costly op, which a block computes once for
// all of its rows and keeps in shared memory (AStitch's regional scheme for a costly op before a broadcast).
//
// Before:  for row: for c: .. tanh(g[c]) ..
// After:   for c: s[c] = tanh(g[c]); barrier; for row: for c: .. s[c] ..
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// What is broadcast along the rows of a phase, takes a costly op, and needs nothing that the phase reduces;
/// in graph order. Of a number of elements that is known and small.
std::vector<ir::NodeId> costly_columns(const ir::Graph&, const Phase&);
/// The shared memory that these take.
std::int64_t bytes_of_costly_columns(const ir::Graph&, const Phase&);
/// Why a block cannot compute them once; empty if it can, or is not asked to.
std::string defect_of_costly_columns(const ir::Graph&, const Phase&, const Choices&);

}  // namespace fuse::schedule
