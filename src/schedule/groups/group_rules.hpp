// The rules by which groups of ops grow: APOLLO's Tables 1 and 2 and our own rows, as one table of data.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

#include "analysis/element.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

/// What a group of ops is to the rules: one bit per class, so that one row may name several.
enum class GroupClass : std::uint16_t {
  element_wise = 1,
  broadcast = 2,
  reduction = 4,
  transpose = 8,
  view = 16,      ///< a reshape
  movement = 32,  ///< one element moved in another way: slice, pad, concat, gather, ...
  scan = 64,      ///< combines the elements before it along one dim
  contraction = 128,
  boundary = 256,  ///< a user's kernel, a collective: never fused
};
constexpr std::uint16_t bit(GroupClass c) { return static_cast<std::uint16_t>(c); }
std::string_view to_string(GroupClass);

/// The class of the group that an op is by itself; it follows from the op's element relations.
GroupClass class_of(const ir::Graph&, ir::NodeId);

/// APOLLO's layers, as bits.
enum class Layer : std::uint8_t { aggregate = 1, stitch = 2, parallel = 4 };
constexpr std::uint8_t bit(Layer layer) { return static_cast<std::uint8_t>(layer); }
inline constexpr std::uint8_t all_layers = 7;

/// Whose rules: fuse's own, or APOLLO's as printed.
enum class RuleSet : std::uint8_t { fuse = 1, apollo = 2 };
constexpr std::uint8_t bit(RuleSet set) { return static_cast<std::uint8_t>(set); }

/// What a rule asks besides the classes; one bit per check. Every row also asks that the merge makes no cycle
/// and that the merged group stays within the limits.
enum class Check : std::uint8_t {
  loop_dims = 1,       ///< both groups run over the same loops (Algorithm 2, line 2)
  parameters = 2,      ///< and map them to threads alike (line 2)
  canonical_form = 4,  ///< both reduce in the same form: all, x or y (line 3)
  coverage = 8,   ///< the consumer's loop meets every element that the producer must store (BladeDISC, 4.2)
  epilogue = 16,  ///< the GEMM library takes the consumer as its epilogue, without changing a rounding
  prologue = 32,  ///< the GEMM library takes the producer as its prologue
  tiles = 64,     ///< a view keeps the reduced loop apart from the others (BladeDISC, 4.2: tile-dims)
};
constexpr std::uint8_t bit(Check check) { return static_cast<std::uint8_t>(check); }

struct Rule {
  std::string_view name;
  std::uint16_t producer, consumer;  ///< classes
  GroupClass result;
  Layer layer;
  std::uint8_t sets;    ///< RuleSet bits
  std::uint8_t checks;  ///< Check bits
};

/// The rows in priority order (APOLLO, Algorithm 1, line 4).
std::span<const Rule> rules();
/// The first row of the set and the layers for the pair, or null.
const Rule* find_rule(GroupClass producer, GroupClass consumer, RuleSet set, std::uint8_t layers);

}  // namespace fuse::schedule
