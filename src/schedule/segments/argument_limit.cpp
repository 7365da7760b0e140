// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/argument_limit.hpp"

#include <algorithm>
#include <iterator>

namespace fuse::schedule {

Mentions::Mentions(const ir::Graph& graph) : graph_(graph) {
  for (const ir::Symbol& symbol : graph.symbols) {
    ids_.emplace(symbol.name, static_cast<SymbolId>(ids_.size()));
  }
}

std::vector<SymbolId> Mentions::of(ir::NodeId id) const {
  std::vector<SymbolId> found;
  if (ids_.empty()) return found;
  const auto add = [&](const std::vector<Dim>& dims) {
    for (const Dim& dim : dims) {
      if (dim.is_constant()) continue;
      for (const Dim& symbol : dim.symbols()) found.push_back(ids_.at(symbol.name()));
    }
  };
  add(graph_[id].type.dims);
  add(ir::dims_of(graph_[id].attr));
  for (const ir::NodeId operand : graph_[id].operands) add(graph_[operand].type.dims);
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

std::vector<std::uint32_t> merged(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace fuse::schedule
