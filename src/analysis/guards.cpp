// SPDX-License-Identifier: Apache-2.0
#include "analysis/guards.hpp"

namespace fuse::analysis {

std::vector<ir::Guard> guards_of(const ir::Graph& graph) {
  const std::vector<Constraint> constraints = constraints_of(graph);
  if (constraints.empty()) return {};
  const Facts all(graph.symbols, constraints);  // refuses contradictions
  std::size_t assumptions = 0;
  while (assumptions < constraints.size() && constraints[assumptions].needed_by.empty()) ++assumptions;
  const Facts ranges(graph.symbols, {});
  const Facts assumed(graph.symbols, std::span(constraints).first(assumptions));
  std::vector<ir::Guard> guards;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const Constraint& constraint = constraints[i];
    if ((i < assumptions ? ranges : assumed).holds(constraint.relation)) continue;
    guards.push_back({constraint.relation, constraint.location, constraint.needed_by});
  }
  return guards;
}

}  // namespace fuse::analysis
