// SPDX-License-Identifier: Apache-2.0
#include "analysis/guards.hpp"

#include <fmt/format.h>

namespace fuse::analysis {

std::string Guard::to_string() const {
  std::string text = relation.to_string();
  if (!needed_by.empty()) text += ", for " + needed_by;
  if (location.line != 0) text += fmt::format(" at {}:{}", location.file, location.line);
  return text;
}

std::vector<Guard> guards_of(const ir::Graph& graph) {
  const std::vector<Constraint> constraints = constraints_of(graph);
  if (constraints.empty()) return {};
  const Facts all(graph.symbols, constraints);  // refuses contradictions
  std::size_t assumptions = 0;
  while (assumptions < constraints.size() && constraints[assumptions].needed_by.empty()) ++assumptions;
  const Facts ranges(graph.symbols, {});
  const Facts assumed(graph.symbols, std::span(constraints).first(assumptions));
  std::vector<Guard> guards;
  for (std::size_t i = 0; i < constraints.size(); ++i) {
    const Constraint& constraint = constraints[i];
    if ((i < assumptions ? ranges : assumed).holds(constraint.relation)) continue;
    guards.push_back({constraint.relation, constraint.location, constraint.needed_by});
  }
  return guards;
}

}  // namespace fuse::analysis
