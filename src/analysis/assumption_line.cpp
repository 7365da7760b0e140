// SPDX-License-Identifier: Apache-2.0
#include "analysis/assumption_line.hpp"

#include <fmt/format.h>

#include <string_view>
#include <vector>

#include "analysis/facts.hpp"

namespace fuse::analysis {
namespace {

std::string text_of(const DimRelation& relation) {
  const auto line = [](std::string_view what, const Dim& a, const Dim& b) {
    return fmt::format("g.assume({}({}, {}));", what, a.to_string(), b.to_string());
  };
  switch (relation.kind) {
    case DimRelation::Kind::equal:
      return line("equal", relation.left, relation.right);
    case DimRelation::Kind::at_most:
      return line("at_most", relation.left, relation.right);
    case DimRelation::Kind::divides:
      return line("divisible", relation.right, relation.left);
    case DimRelation::Kind::one_or:
      return line("one_or", relation.left, relation.right);
  }
  return {};
}

}  // namespace

std::string assumption_line(const ir::Graph& graph, std::span<const DimRelation> relations) {
  std::vector<Constraint> constraints = constraints_of(graph);
  std::string text;
  for (const DimRelation& relation : relations) {
    if (relation.left.is_constant() && relation.right.is_constant()) return {};
    constraints.push_back({.relation = relation});
    text += (text.empty() ? "" : " ") + text_of(relation);
  }
  try {
    const Facts facts(graph.symbols, constraints);
  } catch (const Error& error) {
    if (error.code() != ErrorCode::contradiction) throw;
    return {};
  }
  return text;
}

}  // namespace fuse::analysis
