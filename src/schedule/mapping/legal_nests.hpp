// Legal nests: all loops that a phase can have, for a search to choose from and for tests to run.
//
//   softmax of 4096 rows of 1024 elements:  r:grid r:warp8 c:serial c:lane32, register_cache = 32
//                                           r:grid c:serial c:cluster4 c:warp8 c:lane32 c:vector4   ...
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// The numbers that splits and caches are tried with. An extent of one unit is not a split.
struct NestNumbers {
  std::vector<int> warps = {1, 2, 8};
  std::vector<int> lanes = {1, 4, 32};  ///< lanes of a warp along the rows; the others lie along the elements
  std::vector<int> vectors = {1, 2, 4};
  std::vector<int> blocks_per_row = {1, 4};  ///< blocks that share a row; also as a cluster
  std::vector<int> turns = {0, 1, 132};      ///< blocks that take rows in turns; 0: one block per row
  std::vector<int> register_cache = {32};    ///< besides none, like the next
  std::vector<int> shared_cache = {512};
  std::vector<int> accumulators = {};  ///< besides one
  bool row_to_row = false;             ///< also with `ahead` and `invariants`
};

/// A few of each, and the widest vectors that the phase allows: what is between them can be legal, too.
NestNumbers few_numbers(const ir::Graph&, const Phase&, const Target&);

/// Calls `visit` for all choices that a kernel of this phase alone can have on the target, in a fixed order.
/// The phase is as it was cut: its rewrites (`online_softmax`, `across`) are among the choices.
void each_legal_nest(const ir::Graph&, const Phase&, const Target&, const NestNumbers&,
                     const std::function<void(const Choices&)>& visit);

/// The choices without their numbers: "r:grid r:warp c:serial c:lane, register_cache".
std::string structure_of(const Choices&);

}  // namespace fuse::schedule
