// Running error analysis: what a right device may answer, element by element.
//
// The centre is the reference evaluation in the graph's own types, every op rounded once. Beside it stand the
// least and the greatest value that a device may have there instead, carried from op to op:
//   an op whose table row says 0 ulps, on operands that leave no choice, leaves none: bit for bit;
//   an elementary function widens by the table's ulps, a reduction and a contraction by gamma(n) sum |x|,
//   in whatever order it adds; integers, and minima and maxima, leave no choice;
//   an element whose value the analysis cannot follow (a quotient whose divisor may be 0, a gather whose
//   index may differ) is undecided: it is not compared, nor what depends on it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <fuse/dim_values.hpp>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "eval/evaluate.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::fuzz {

using runtime::ReferenceTensor;

/// A value of a graph with what a device may have in its place.
struct Enclosure {
  ReferenceTensor centre;
  /// Values of the dtype, as the centre. Where low and high are the same bits there is no choice; [-inf, inf]
  /// says undecided, NaN too. Empty: no element leaves a choice.
  std::optional<ReferenceTensor> low, high;

  const ReferenceTensor& least() const { return low ? *low : centre; }
  const ReferenceTensor& greatest() const { return high ? *high : centre; }
  bool exact() const { return !low; }
};

struct Shares {
  std::size_t elements = 0;
  std::size_t exact = 0;      ///< compared bit for bit
  std::size_t undecided = 0;  ///< not compared
  Shares& operator+=(const Shares& other);
};
Shares shares_of(const Enclosure&);

/// The value of one node from those of its operands. Throws what the reference evaluator throws.
/// `input` is the value of an input or parameter.
Enclosure enclose(const ir::Graph&, ir::NodeId, std::span<const Enclosure* const> operands,
                  const DimValues& dims, const runtime::HostTensor* input = nullptr);

/// The outputs of a graph, by name.
std::map<std::string, Enclosure> enclose(const ir::Graph&, const runtime::Values& inputs, const DimValues&);

/// Empty if every element of `got` is one that the enclosure allows; else one line that names the first that
/// is not.
std::string mismatch(const Enclosure& expected, const runtime::HostTensor& got);

}  // namespace fuse::fuzz
