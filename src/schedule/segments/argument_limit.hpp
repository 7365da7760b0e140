// Arguments of a launch, as the partition counts them: a buffer for each value that the kernel reads or
// writes, and an extent for each symbol that its dims mention; others are not passed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>
#include <unordered_map>
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
  std::vector<SymbolId> of(ir::NodeId) const;

 private:
  const ir::Graph& graph_;
  std::unordered_map<std::string_view, SymbolId> ids_;  // names are the graph's
};

/// What is in either list, once each; both are sorted.
std::vector<std::uint32_t> merged(const std::vector<std::uint32_t>&, const std::vector<std::uint32_t>&);

}  // namespace fuse::schedule
