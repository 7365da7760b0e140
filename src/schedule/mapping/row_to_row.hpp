// Row to row: what threads keep in registers from one row to the next, where blocks take rows in turns
// (r:serial). Each thread walks the same elements of every row.
//
// Before:  for row: load x, gamma; sum, scale; store
// After:   load gamma, x of the first row; for row: load x of the next row; sum, scale; store
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

/// An input that is the same in each row, as the scale of a norm is.
struct RowInvariant {
  ir::NodeId input = 0;
  ir::NodeId broadcast = 0;  ///< broadcast along the rows through which the walk reads it
  bool operator==(const RowInvariant&) const = default;
};

/// The invariants in graph order, each once.
std::vector<RowInvariant> row_invariants(const ir::Graph&, const Phase&);
/// The inputs with the loops' own dims that the first pass loads, in graph order.
std::vector<ir::NodeId> rows_to_load(const ir::Graph&, const Phase&);
/// The 32-bit registers per thread for as many elements of a value.
std::int64_t registers_of(const ir::Graph&, ir::NodeId value, std::int64_t elements);
/// Why threads cannot keep these; empty if they can, or keep nothing.
std::string defect_of_row_to_row(const ir::Graph&, const Phase&, const Choices&);

}  // namespace fuse::schedule
