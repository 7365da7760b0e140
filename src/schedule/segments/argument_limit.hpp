// Arguments of a launch, as the partition counts them: a buffer for each value that the kernel reads or
// writes, and an extent for each symbol that its dims mention; others are not passed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

inline constexpr std::size_t bytes_an_argument = 8;  // for a buffer or an extent

/// An index into Graph::symbols.
using SymbolId = std::uint32_t;

/// Which symbols each node brings into the kernel that computes it.
class Mentions {
 public:
  explicit Mentions(const ir::Graph&);
  /// Those of its dims, its operands' dims and its attributes, sorted. Empty in a graph without symbols.
  const std::vector<SymbolId>& of(ir::NodeId id) const { return of_[id]; }

 private:
  std::vector<std::vector<SymbolId>> of_;  // for each node
};

/// Sorts the ids, and removes duplicates.
void sort_unique(std::vector<std::uint32_t>& ids);

/// What is in either list, once each; both are sorted.
std::vector<std::uint32_t> merged(const std::vector<std::uint32_t>&, const std::vector<std::uint32_t>&);

}  // namespace fuse::schedule
