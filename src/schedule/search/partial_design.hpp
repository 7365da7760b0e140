// The variables of a kernel's design in their order, and a design of which the first ones have values.
//
//   rewrite, blocks of a row, turns, warps of rows, warps walking, lanes, vector, handoff, cache, ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "schedule/nest/choices.hpp"
#include "schedule/search/design_facts.hpp"

namespace fuse::schedule {

/// Those on which most of the cost depends come first, so that the bound soon knows it.
enum class DesignVariable : std::uint8_t {
  rewrite,        ///< stages as they are, `online_softmax`, `across`
  parts,          ///< blocks, or a cluster, that share a row
  turns,          ///< blocks that take rows in turns
  row_warps,      ///< warps that have rows of their own
  walking_warps,  ///< warps that share a row
  lanes,          ///< lanes of a warp along the rows; the others walk
  vector,         ///< elements side by side, and of which dim
  handoff,        ///< blocks that wait for each other; 0: launches
  cache,          ///< what passes need again: nowhere, in registers, packed, in shared memory
  accumulators,
  row_to_row,  ///< `ahead`, `invariants`, `columns_once`
};
inline constexpr std::size_t design_variables = 11;
std::string_view to_string(DesignVariable);

/// A value of a variable: a number, and which of several things it counts.
struct DesignOption {
  int number = 1;
  int kind = 0;
};

/// The values of the first variables; those of the others are as they begin.
struct PartialDesign {
  enum class Cache : std::uint8_t { none, registers, packed, shared };
  /// Kinds of the last variable; a sum of them.
  static constexpr int with_ahead = 1, with_invariants = 2, once = 4;

  std::size_t fixed = 0;    ///< variables that have a value
  std::size_t rewrite = 0;  ///< which of the phase's rewrites
  int parts = 1;
  bool cluster = false;  ///< the parts are a cluster's
  int turns = 0;         ///< 0: a block for each row
  int row_warps = 1, walking_warps = 1;
  int row_lanes = 1;
  int vector = 1;
  bool vector_of_rows = false;
  int blocks = 0;
  Cache cache = Cache::none;
  int cache_size = 0;  ///< registers, or elements in shared memory
  int accumulators = 1;
  bool ahead = false, invariants = false, columns_once = false;

  bool is_fixed(DesignVariable variable) const { return fixed > static_cast<std::size_t>(variable); }
  DesignVariable next() const { return static_cast<DesignVariable>(fixed); }
  /// Blocks share a row, and are no cluster: they leave partial results in memory.
  bool leaves_parts() const { return parts > 1 && !cluster; }
  void take(const DesignOption&);  ///< gives the next variable its value
};

/// The record of a design, whose variables without a value are as they begin. `registers`: of a thread.
Choices choices_of(const DesignFacts&, const PartialDesign&, int registers);

}  // namespace fuse::schedule
