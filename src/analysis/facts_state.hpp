// What Facts holds: substitutions, rewrite rules, bounds and factors over the graph's symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "analysis/facts.hpp"
#include "analysis/polynomial.hpp"

namespace fuse::analysis {

struct SymbolFact {
  ir::Symbol declared{};
  Dim dim{};  ///< as declared: forms inside the state are over these
  std::int64_t low = 0, high = 0, hint = 0;
  std::int64_t factor = 1;        ///< divides it
  std::optional<Dim> replaced{};  ///< what determines it, over symbols that nothing determines
  Dim narrowed{};                 ///< with the range [low, high]; a constant where they meet
  bool touched = false;           ///< canonical forms differ in it
};

/// low <= product <= high, and factor divides it.
struct ProductFact {
  std::vector<Atom> factors{};
  Interval bounds{};
  std::int64_t factor = 1;
};

/// lead = rest, lead being a product that is later in the order of terms than those of rest.
struct Rule {
  DimTerm lead{};
  Dim rest{};
};

/// What is known of forms. Rules and products stand by first_key, inequalities by the keys of their terms.
struct KnownForms {
  std::vector<Rule> rules{};
  std::unordered_map<std::string, std::vector<std::size_t>> rules_of{};
  std::vector<ProductFact> products{};
  std::unordered_map<std::string, std::vector<std::size_t>> products_of{};
  std::vector<Dim> nonnegative{};
  std::unordered_map<std::string, std::vector<std::size_t>> nonnegative_of{};
};

struct Facts::State {
  std::vector<SymbolFact> symbols{};  ///< in order of declaration
  std::unordered_map<std::string, std::size_t> by_name{};
  KnownForms forms{};

  const SymbolFact* find(const std::string& name) const;

  /// The form over symbols that nothing determines, products rewritten by the rules, exact divisions carried
  /// out.
  Dim rewrite(const Dim&) const;
  /// A rewritten form with the symbols' narrowest ranges.
  Dim narrow(const Dim&) const;
  Interval interval(const Dim&) const;
  Interval interval(const Atom&) const;
  Interval interval(const DimTerm&) const;
  template <class F>
  void each_product_in(const DimTerm&, F&& f) const;
  std::int64_t factor(const Dim&) const;
  std::int64_t factor(const Atom&) const;
  std::int64_t factor(const DimTerm&) const;
  /// Proves 0 <= form for a rewritten form; adds up to `depth` of the known inequalities.
  bool proves_nonnegative(const Dim& form, int depth) const;
  bool touches(const Dim&) const;

 private:
  Dim rewrite_atom(const Atom&) const;
  Dim without_multiples(const Dim& dividend, const Dim& divisor) const;
  Dim apply_rules(Dim) const;
  bool is_multiple(const Dim& dividend, const Dim& divisor) const;
  bool rewrite_term(const DimTerm&, Dim& out) const;
};

/// Adds what the constraints say. Throws Conflict at one that cannot hold with the others.
struct Conflict {
  std::size_t constraint = 0;
};
void solve(Facts::State&, const std::vector<ir::Symbol>&, std::span<const Constraint>);

}  // namespace fuse::analysis
