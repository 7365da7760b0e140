// Vector width: elements that a thread walks side by side, so that it loads and stores up to 16 bytes at a
// time.
//
// Elements of the innermost dim of what the loops walk are side by side. They are so in every value that is
// read or stored per element, unless a permutation, a stride, a pad or the like stands between: then threads
// walk element by element. AStitch calls the packing of elements into a thread vertical (4.3).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"
#include "schedule/segments/transposed.hpp"

namespace fuse::schedule {

inline constexpr int most_vector_elements = 8;

/// The widest vector for a phase, a power of two that divides the innermost extent where the symbols that a
/// kernel tests are multiples of it (symbols_to_test); 1: there is none.
int widest_vector(const ir::Graph&, const Phase&);
/// The widest of these for which what is tested holds at the hints of the symbols.
int usual_vector(const ir::Graph&, const Phase&);
/// The symbols that a kernel with this vector has to test: where all are multiples of it, threads walk by
/// vectors, else one element at a time. The list is empty where nothing is tested.
std::vector<Dim> symbols_to_test(const ir::Graph&, const Phase&, int vector);
/// How many rows that lie side by side in memory a thread may take, where a reduction walks down columns; 1
/// where memory runs along what is reduced.
int widest_row_vector(const ir::Graph&, const Phase&);
/// The vector of a phase whose blocks have tiles: lanes walk elements side by side along the memory of what
/// is transposed, and along that of the results. It is as many as a word of 4 bytes has of the narrowest
/// value.
int tile_vector(const ir::Graph&, const Phase&, const Transposed&);

}  // namespace fuse::schedule
