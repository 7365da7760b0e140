// IndexMap: which elements of an operand an element of a result is computed from, as Dim expressions.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::analysis {

/// A variable k0, k1, ... that is no coordinate of the result: 0 <= k < extent. The extent may hold the
/// result's variables and earlier free ones.
struct FreeVariable {
  Dim extent;
  bool chosen = false;  ///< data chooses one value; otherwise every value is read
};

/// low <= value < high on every side; `outside`: not so.
struct Box {
  struct Side {
    Dim value, low, high;
  };
  std::vector<Side> sides{};
  bool outside = false;
};

/// The result's element at (i0, i1, ...) reads the operand's elements at `at`, for the values of the free
/// variables, where `where` holds. A dim of extent 1 has the coordinate 0 and no variable. A
/// map never leaves out an element that is read; it may name more where `may` is set or a variable is chosen.
struct IndexMap {
  std::vector<Dim> result{}, operand{};  ///< extents
  std::vector<FreeVariable> free{};
  std::vector<Dim> at{};  ///< one for each dim of the operand
  std::optional<Box> where{};
  bool may = false;         ///< whether these elements are read is up to data, or unknown
  bool positional = false;  ///< the value also depends on the coordinates themselves
};

/// The variable of a dim of the result: "i2", or 0 where the extent is 1.
Dim result_variable(std::size_t dim, const Dim& extent);
/// "k2", or 0 where the extent is 1.
Dim free_variable(std::size_t number, const Dim& extent);
/// The position of a variable in its map.
struct Variable {
  bool free = false;
  std::size_t number = 0;
};
/// The variables of an expression, in no particular order, repeated as they stand there.
std::vector<Variable> variables_of(const Dim&);

/// Reads every element of the operand for every element of the result, perhaps.
IndexMap unknown_map(const std::vector<Dim>& operand, const std::vector<Dim>& result);

/// How `node` reads its operand number `operand`; empty where the value of that operand is not used.
std::optional<IndexMap> index_map(const ir::Graph&, ir::NodeId node, std::size_t operand);

/// "(i0, i1) -> (i0, k0) for k0 in [0, 8)"
std::string to_string(const IndexMap&);

}  // namespace fuse::analysis
