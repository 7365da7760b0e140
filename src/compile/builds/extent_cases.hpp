// Cases of extents that are "1 or N" (BladeDISC, 2.2): each has builds of its own, in which such an extent is
// one of the two, so that no kernel asks.
//
// Before:  x: f32[M, K], y: f32[M, N], K = 1 or N, x + y
// After:   test 0: K = 1  yes: case 0  no: case 1     case 0 has the fact K = 1, case 1 K = N
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/relation.hpp>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/versions/version_table.hpp"

namespace fuse {

struct ExtentCases {
  schedule::VersionTable table{};                 ///< the case for dims, as the graph's guards allow them
  std::vector<std::vector<DimRelation>> facts{};  ///< what holds in each case
};

/// One case without facts where the graph's facts say of each extent which of the two it is. Throws
/// unsupported for more than 16 cases. Pure.
ExtentCases extent_cases(const ir::Graph&);

}  // namespace fuse
