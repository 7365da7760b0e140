// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/argument_limit.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <unordered_map>

#include "base/access.hpp"

namespace fuse::schedule {

Mentions::Mentions(const ir::Graph& graph) : of_(graph.nodes.size()) {
  if (graph.symbols.empty()) return;
  std::unordered_map<std::string_view, SymbolId> ids;  // names are the graph's
  for (const ir::Symbol& symbol : graph.symbols) ids.emplace(symbol.name, static_cast<SymbolId>(ids.size()));
  // Most dims are copies of few, which share their expression. A dim that is kept keeps its address.
  struct Known {
    Dim dim;
    std::vector<SymbolId> symbols{};
  };
  std::unordered_map<const detail::DimPoly*, Known> known;
  const auto add = [&](const std::vector<Dim>& dims, std::vector<SymbolId>& found) {
    for (const Dim& dim : dims) {
      if (dim.is_constant()) continue;
      const auto [entry, added] = known.try_emplace(poly_of(dim), Known{dim});
      std::vector<SymbolId>& symbols = entry->second.symbols;
      if (added) {
        for (const Dim& symbol : dim.symbols()) symbols.push_back(ids.at(symbol.name()));
      }
      found.insert(found.end(), symbols.begin(), symbols.end());
    }
  };
  for (ir::NodeId id = 0; id < graph.nodes.size(); ++id) {
    const ir::Node& node = graph[id];
    std::vector<SymbolId>& found = of_[id];
    add(node.type.dims, found);
    add(ir::dims_of(node.attr), found);
    for (const ir::NodeId operand : node.operands) add(graph[operand].type.dims, found);
    sort_unique(found);
  }
}

void sort_unique(std::vector<std::uint32_t>& ids) {
  std::sort(ids.begin(), ids.end());
  ids.erase(std::unique(ids.begin(), ids.end()), ids.end());
}

std::vector<std::uint32_t> merged(const std::vector<std::uint32_t>& a, const std::vector<std::uint32_t>& b) {
  std::vector<std::uint32_t> both;
  both.reserve(a.size() + b.size());
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(both));
  return both;
}

}  // namespace fuse::schedule
