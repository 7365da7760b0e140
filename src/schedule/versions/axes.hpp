// Axes: along what the range of a segment's dims is divided into cells, in which versions are compared.
//
//   softmax of f32[B, T, N], N in [1, 65536]:   N: [1, 4] [5, 16] [17, 64] .. [16385, 65536];   B * T: ..
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

using SymbolRanges = std::map<std::string, DimRange>;  ///< by name
using SymbolValues = std::map<std::string, std::int64_t>;

/// The value of an expression over the symbols. Throws invalid_extent where it overflows.
std::int64_t value_of(const Dim&, const SymbolValues&);

/// Symbols that grow together from cell to cell.
struct DimAxis {
  Dim extent = 1;                      ///< their product, which is what a table tests
  std::vector<std::int64_t> most{};    ///< per cell, its largest extent
  std::vector<SymbolRanges> ranges{};  ///< per cell, the ranges of the symbols, with hints in their middle
  std::vector<SymbolValues> least{};   ///< per cell, the least values that, like the hints, vectors divide
  std::size_t cells() const { return ranges.size(); }
};

/// The symbols in dims that are reduced or scanned, then all others of the segment; where there are no
/// others, the first of those. An axis without symbols has one cell. A symbol alone is cut at powers of 4;
/// those that grow together are cut into as many cells each.
std::array<DimAxis, 2> axes_of(const ir::Graph&, const Segment&);

/// An axis of one symbol, cut behind 1 and at powers of `step`; of none, one cell.
DimAxis axis_of_symbol(const ir::Symbol* symbol, std::int64_t step, std::size_t most_cells);

/// The elements of the graph's values, each number once that is no constant.
std::vector<Dim> value_sizes(const ir::Graph&);
/// Whether the assumptions of the graph allow the values, and each of these sizes is at most 5e10 elements,
/// which no device has memory for. `others`: values of all other symbols, of which assumptions are not asked:
/// others may determine them.
bool is_possible(const ir::Graph&, std::span<const Dim> sizes, const SymbolValues& values,
                 const SymbolValues& others);

}  // namespace fuse::schedule
