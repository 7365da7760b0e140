// Facts: what is known about a graph's extents before they have values; stages ask nothing else.
//
//   dims S0 in [512, 65536], S3; a reshape of f32[S0, 4] to f32[S3]
//   facts.equal(S3, 4 * S0)  facts.divisible(S3, 4)  facts.range(S3) = [2048, 262144]  facts.canonical(S3) =
//   4 * S0
//
// Sources: declared ranges, Graph::assume, and what the ops need of their operands (ir::infer_type). Answers
// are proofs: true holds for every value of the symbols that prepare accepts, false means "not proven".
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::analysis {

/// A relation that holds whenever the graph runs, and who says so.
struct Constraint {
  DimRelation relation{};
  SourceLocation location{};
  std::string needed_by{};  ///< "reshape %5"; empty for an assumption
};

struct Range {
  std::int64_t min = 0, max = 0;  ///< the ends of int64: no bound
  bool operator==(const Range&) const = default;
};

class Facts {
 public:
  /// Nothing but the ranges that dims carry.
  Facts();
  /// Throws a user Error (contradiction) with the lines of a smallest set of constraints that cannot hold
  /// together.
  Facts(const std::vector<ir::Symbol>& symbols, std::span<const Constraint> constraints);

  bool equal(const Dim& a, const Dim& b) const;
  /// The extents multiply to the same number.
  bool equal_products(const std::vector<Dim>& a, const std::vector<Dim>& b) const;
  bool divisible(const Dim& a, const Dim& by) const;
  bool less(const Dim& a, const Dim& b) const;
  bool le(const Dim& a, const Dim& b) const;
  bool holds(const DimRelation&) const;
  Range range(const Dim&) const;
  /// The largest constant that is known to divide it; 0 for a dim that is 0.
  std::int64_t factor(const Dim&) const;

  /// One form for equal extents, over the symbols with the narrowest ranges known. A symbol that others
  /// determine is replaced by them: S0 by S2 * S3.
  Dim canonical(const Dim&) const;
  std::vector<Dim> canonical(std::span<const Dim>) const;
  /// What was declared, narrowed by all that is known; in order of declaration.
  std::vector<ir::Symbol> symbols() const;

  struct State;

 private:
  bool products_match(const std::vector<Dim>& a, const std::vector<Dim>& b) const;

  std::shared_ptr<const State> state_;
};

/// The assumptions of a graph, then what its live ops need and forms and ranges leave open; each once.
std::vector<Constraint> constraints_of(const ir::Graph&);
Facts facts_of(const ir::Graph&);

/// Whether extents of a graph are equal: by their forms, else by its facts, which are made when they are
/// first needed. The graph outlives it. It is not thread-safe.
class EqualExtents {
 public:
  explicit EqualExtents(const ir::Graph& graph) : graph_(graph) {}
  bool operator()(const Dim& a, const Dim& b);

 private:
  const ir::Graph& graph_;
  std::optional<Facts> facts_;
};

}  // namespace fuse::analysis
