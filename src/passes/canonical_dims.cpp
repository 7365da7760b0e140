// SPDX-License-Identifier: Apache-2.0
#include "passes/canonical_dims.hpp"

#include <algorithm>
#include <unordered_map>

#include "analysis/facts.hpp"
#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"
#include "ir/graph/rewrite_dims.hpp"

namespace fuse::ir {
namespace {

class Canonicaliser {
 public:
  Canonicaliser(const Graph& graph, const std::vector<analysis::Constraint>& constraints)
      : graph_(graph), facts_(graph.symbols, constraints), constraints_(constraints), result_(graph) {}

  Graph run() {
    result_.symbols = facts_.symbols();
    for (Symbol& symbol : result_.symbols) {
      // Every number is a factor of 0 alone.
      symbol.factor = std::max<std::int64_t>(1, facts_.factor(Dim::symbol(symbol.name, symbol.range)));
      narrowed_.emplace(symbol.name, Dim::symbol(symbol.name, symbol.range));
    }
    add_needs();
    for (Node& node : result_.nodes) rewrite_dims(node, [this](Dim& dim) { rewrite(dim); });
    return std::move(result_);
  }

 private:
  /// Assumptions keep their symbols, all of them: what they say is what the next Facts is made of.
  void add_needs() {
    std::size_t assumptions = 0;
    while (assumptions < constraints_.size() && constraints_[assumptions].needed_by.empty()) ++assumptions;
    const analysis::Facts assumed(graph_.symbols, std::span(constraints_).first(assumptions));
    result_.assumptions.clear();
    std::unordered_map<std::string, LocationId> locations;
    for (LocationId id = 0; id < result_.locations.size(); ++id) {
      locations.try_emplace(key(result_.locations[id]), id);
    }
    for (const analysis::Constraint& constraint : constraints_) {
      if (!constraint.needed_by.empty() && assumed.holds(constraint.relation)) continue;
      Assumption& added = result_.assumptions.emplace_back();
      added.relation = {constraint.relation.kind, narrow(constraint.relation.left),
                        narrow(constraint.relation.right)};
      added.location = locations.at(key(constraint.location));
    }
  }
  static std::string key(const SourceLocation& at) { return at.file + ':' + std::to_string(at.line); }

  Dim narrow(const Dim& dim) const {
    return dim.substitute([&](std::string_view name) {
      const auto found = narrowed_.find(name);
      return found == narrowed_.end() ? nullptr : &found->second;
    });
  }

  void rewrite(Dim& dim) {
    const auto [entry, fresh] = seen_.try_emplace(poly_of(dim));
    if (fresh) entry->second = {dim, facts_.canonical(dim)};
    dim = entry->second.second;
  }

  const Graph& graph_;
  const analysis::Facts facts_;
  const std::vector<analysis::Constraint>& constraints_;
  Graph result_;
  std::unordered_map<std::string_view, Dim> narrowed_;
  std::unordered_map<const detail::DimPoly*, std::pair<Dim, Dim>> seen_;  ///< keeps its keys alive
};

}  // namespace

Graph canonical_dims(const Graph& graph) {
  const std::vector<analysis::Constraint> constraints = analysis::constraints_of(graph);
  if (constraints.empty()) return graph;
  return Canonicaliser(graph, constraints).run();
}

}  // namespace fuse::ir
