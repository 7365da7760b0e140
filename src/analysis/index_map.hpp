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
  bool operator==(const FreeVariable&) const = default;
};

/// low <= value < high on every side; `outside`: not so.
struct Box {
  struct Side {
    Dim value, low, high;
    bool operator==(const Side&) const = default;
  };
  std::vector<Side> sides{};
  bool outside = false;
  bool operator==(const Box&) const = default;
};

/// The result's element at (i0, i1, ...) reads the operand's elements at `at`, for the values of the free
/// variables, where every box of `where` holds. A dim of extent 1 has the coordinate 0 and no variable. A
/// map never leaves out an element that is read; it may name more where `may` is set or a variable is chosen.
struct IndexMap {
  std::vector<Dim> result{}, operand{};  ///< extents
  std::vector<FreeVariable> free{};
  std::vector<Dim> at{};  ///< one for each dim of the operand
  std::vector<Box> where{};
  bool may = false;         ///< whether these elements are read is up to data, or unknown
  bool positional = false;  ///< the value also depends on the coordinates themselves
  bool injective = false;   ///< an element of the operand is read for at most one element of the result

  bool data_dependent() const;
  bool operator==(const IndexMap&) const = default;
};

/// The variable of a dim of the result: "i2", or 0 where the extent is 1.
Dim result_variable(std::size_t dim, const Dim& extent);
/// "k2", or 0 where the extent is 1.
Dim free_variable(std::size_t number, const Dim& extent);
/// The position of a variable in its map; empty for an expression that is not a single variable.
struct Variable {
  bool free = false;
  std::size_t number = 0;
  bool operator==(const Variable&) const = default;
};
std::optional<Variable> as_variable(const Dim&);
/// The variables of an expression, in no particular order, repeated as they stand there.
std::vector<Variable> variables_of(const Dim&);

IndexMap identity_map(const std::vector<Dim>& dims);
/// Reads every element of the operand for every element of the result, perhaps.
IndexMap unknown_map(const std::vector<Dim>& operand, const std::vector<Dim>& result);

/// How `node` reads its operand number `operand`; empty where the value of that operand is not used.
std::optional<IndexMap> index_map(const ir::Graph&, ir::NodeId node, std::size_t operand);

/// The result of `outer` through the value between them to the operand of `inner`; empty where nothing of it
/// is read. outer.operand are the extents of inner.result.
std::optional<IndexMap> compose(const IndexMap& outer, const IndexMap& inner);

/// "(i0, i1) -> (i0, k0) for k0 in [0, 8)"
std::string to_string(const IndexMap&);

}  // namespace fuse::analysis
