// SPDX-License-Identifier: Apache-2.0
#include "schedule/versions/narrowed.hpp"

#include <algorithm>
#include <string_view>
#include <unordered_map>

#include "base/access.hpp"
#include "ir/graph/rewrite_dims.hpp"
#include "passes/canonical_dims.hpp"

namespace fuse::schedule {

ir::Graph narrowed(const ir::Graph& graph, std::span<const DimRelation> relations) {
  if (relations.empty()) return graph;
  ir::Graph result = graph;
  for (const DimRelation& relation : relations) result.assumptions.push_back({.relation = relation});
  return ir::canonical_dims(result);
}

ir::Graph with_ranges(const ir::Graph& graph, const std::function<DimRange(const ir::Symbol&)>& range) {
  ir::Graph result = graph;
  std::unordered_map<std::string_view, Dim> symbols;
  for (ir::Symbol& symbol : result.symbols) {
    symbol.range = range(symbol);
    symbols.emplace(symbol.name, Dim::symbol(symbol.name, symbol.range));
  }
  std::unordered_map<const detail::DimPoly*, std::pair<Dim, Dim>> seen;  // it keeps its keys alive
  const auto rewrite = [&](Dim& dim) {
    if (dim.is_constant()) return;
    const auto [entry, fresh] = seen.try_emplace(poly_of(dim));
    if (fresh) {
      entry->second = {dim, dim.substitute([&](std::string_view name) {
                         const auto found = symbols.find(name);
                         return found == symbols.end() ? nullptr : &found->second;
                       })};
    }
    dim = entry->second.second;
  };
  for (ir::Node& node : result.nodes) ir::rewrite_dims(node, rewrite);
  for (ir::Assumption& assumption : result.assumptions) {
    rewrite(assumption.relation.left);
    rewrite(assumption.relation.right);
  }
  return result;
}

}  // namespace fuse::schedule
