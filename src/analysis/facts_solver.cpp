// Turns constraints into substitutions, rules, bounds and factors, in a few passes over them.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <unordered_map>

#include "analysis/facts_state.hpp"
#include "base/access.hpp"

namespace fuse::analysis {
namespace {

constexpr int max_rounds = 8;                // a bound that still creeps after them stays where it is
constexpr int max_chain = 64;                // the most substitutions one after the other within a round
constexpr std::size_t max_replacement = 64;  // terms and factors of what a symbol is replaced by

using Kind = DimRelation::Kind;

Wide common_multiple(std::int64_t a, std::int64_t b) { return Wide{a / std::gcd(a, b)} * b; }

class Solver {
 public:
  Solver(Facts::State& state, std::span<const Constraint> constraints)
      : state_(state), constraints_(constraints) {}

  void run() {
    for (int round = 0; round < max_rounds; ++round) {
      changed_ = false;
      state_.forms = {};
      for (std::size_t i = 0; i < order_.size(); ++i) keep_range_of_replaced(Replaced(order_[i]));
      for (now_ = 0; now_ < constraints_.size(); ++now_) {
        try {
          apply(constraints_[now_].relation);
        } catch (const Error&) {  // what is replaced goes beyond 63 bits: as it is written it may not
          bound(constraints_[now_].relation);
        }
      }
      flatten();
      if (!changed_) break;
    }
  }

 private:
  struct Replaced {
    std::size_t symbol = 0, constraint = 0;
  };

  [[noreturn]] void conflict() const { throw Conflict{now_}; }

  bool is_replaced(const Dim& dim) const {
    bool found = false;
    for_each_symbol(dim, [&](const Atom& symbol) {
      const SymbolFact* fact = state_.find(symbol->name);
      found = found || (fact && fact->replaced);
    });
    return found;
  }

  Dim reduce(const Dim& dim) const {
    Dim form = state_.rewrite(dim);
    for (int i = 0; i < max_chain && is_replaced(form); ++i) form = state_.rewrite(form);
    return form;
  }

  /// Replacements mention no replaced symbol: the latest do not, and the others follow from them.
  void flatten() {
    for (std::size_t i = order_.size(); i-- > 0;) {
      SymbolFact& fact = state_.symbols[order_[i].symbol];
      try {
        fact.replaced = reduce(*fact.replaced);
      } catch (const Error&) {
        // Beyond 63 bits, as no value that prepare accepts is. One more step is taken when it is asked for.
      }
    }
  }

  // Bounds.

  void narrow(std::size_t index, Interval to) {
    SymbolFact& fact = state_.symbols[index];
    Interval now = intersect({fact.low, fact.high}, to);
    now.low = ceil_divide(now.low, fact.factor) * fact.factor;
    now.high = floor_divide(now.high, fact.factor) * fact.factor;
    if (now.empty()) conflict();
    const std::int64_t low = clamp_to_int64(now.low), high = clamp_to_int64(now.high);
    changed_ = changed_ || low != fact.low || high != fact.high;
    fact.low = low;
    fact.high = high;
    // One value is left: from here on it stands for the symbol.
    const DimRange& declared = fact.declared.range;
    if (low == high && declared.min != declared.max && !fact.replaced) fact.replaced = Dim(low);
  }

  std::size_t index_of(const Atom& atom) const {
    const auto found = state_.by_name.find(atom->name);
    return found == state_.by_name.end() ? state_.symbols.size() : found->second;
  }

  ProductFact& product(const std::vector<Atom>& factors) {
    std::vector<std::size_t>& known = state_.forms.products_of[first_key(factors)];
    for (const std::size_t i : known) {
      if (same(state_.forms.products[i].factors, factors)) return state_.forms.products[i];
    }
    known.push_back(state_.forms.products.size());
    state_.forms.products.push_back({.factors = factors});
    return state_.forms.products.back();
  }

  void narrow(const std::vector<Atom>& factors, Interval to) {
    if (factors.size() == 1) {
      if (factors[0]->kind != DimAtom::Kind::symbol) return;
      if (const std::size_t index = index_of(factors[0]); index < state_.symbols.size()) narrow(index, to);
      return;
    }
    ProductFact& fact = product(factors);
    fact.bounds = intersect(fact.bounds, to);
    if (fact.bounds.empty()) conflict();
    for (std::size_t i = 0; i < factors.size(); ++i) {
      Interval others{1, 1};
      for (std::size_t j = 0; j < factors.size(); ++j) {
        if (j != i) others = multiply(others, state_.interval(factors[j]));
      }
      if (others.low < 1) continue;
      // Where `to.low` is not positive this is no bound of a symbol, which is never negative.
      narrow(std::vector<Atom>{factors[i]},
             {ceil_divide(to.low, others.high), floor_divide(to.high, others.low)});
    }
  }

  /// The form lies in `to`; so each of its terms lies in what the others leave.
  void propagate(const Dim& form, Interval to) {
    if (intersect(state_.interval(form), to).empty()) conflict();
    if (!poly_of(form)) return;
    const std::vector<DimTerm>& terms = poly_of(form)->terms;
    std::vector<Interval> values, behind(terms.size() + 1, Interval{0, 0});
    for (const DimTerm& term : terms) values.push_back(state_.interval(term));
    for (std::size_t i = terms.size(); i-- > 0;) behind[i] = add(behind[i + 1], values[i]);
    Interval before{poly_of(form)->constant, poly_of(form)->constant};
    for (std::size_t i = 0; i < terms.size(); ++i) {
      const Interval others = add(before, behind[i + 1]);
      narrow(terms[i].factors, quotients(add(to, negate(others)), terms[i].coefficient));
      before = add(before, values[i]);
    }
  }

  void keep_range_of_replaced(const Replaced& replaced) {
    now_ = replaced.constraint;
    const SymbolFact& fact = state_.symbols[replaced.symbol];
    const Dim form = *fact.replaced;
    const Interval bounds{fact.low, fact.high};
    const std::int64_t factor = fact.factor;
    propagate(form, bounds);
    add_ordered(form, Dim(clamp_to_int64(bounds.high)));
    add_ordered(Dim(clamp_to_int64(bounds.low)), form);
    divides(factor, form);
    narrow(replaced.symbol, state_.interval(form));
  }

  // Relations.

  void apply(const DimRelation& relation) {
    switch (relation.kind) {
      case Kind::equal:
        return equal(reduce(relation.left), reduce(relation.right));
      case Kind::at_most:
        return at_most(reduce(relation.left), reduce(relation.right));
      case Kind::divides:
        return divides(reduce(relation.left), reduce(relation.right));
      case Kind::one_or:
        return one_or(reduce(relation.left), reduce(relation.right));
    }
  }

  void bound(const DimRelation& relation) {
    if (relation.kind == Kind::divides || relation.kind == Kind::one_or) return;
    try {
      propagate(relation.right - relation.left, {0, relation.kind == Kind::equal ? Wide{0} : infinite});
    } catch (const Error&) {  // nothing is known about it
    }
  }

  /// Says something only where one of the two cannot be.
  void one_or(const Dim& left, const Dim& right) {
    const auto differ = [&](const Dim& a, const Dim& b) {
      const Interval of_a = state_.interval(a), of_b = state_.interval(b);
      return of_a.low > of_b.high || of_a.high < of_b.low;
    };
    if (differ(left, 1)) {
      equal(left, right);
    } else if (differ(left, right)) {
      equal(left, 1);
    }
  }

  void at_most(const Dim& left, const Dim& right) {
    const Dim form = reduce(right - left);
    propagate(form, {0, infinite});
    if (state_.proves_nonnegative(Dim(-1) - form, 2)) conflict();
    add_nonnegative(form);
  }

  void add_ordered(const Dim& low, const Dim& high) {
    try {
      add_nonnegative(high - low);
    } catch (const Error&) {  // beyond 63 bits: the intervals say what is known
    }
  }

  void add_nonnegative(const Dim& form) {
    // A bound of one product is in its interval.
    if (!poly_of(form) || poly_of(form)->terms.size() == 1) return;
    for (const DimTerm& term : poly_of(form)->terms) {
      std::vector<std::size_t>& known = state_.forms.nonnegative_of[key(term.factors)];
      if (known.empty() || known.back() != state_.forms.nonnegative.size())
        known.push_back(state_.forms.nonnegative.size());
    }
    state_.forms.nonnegative.push_back(form);
  }

  void divides(const Dim& by, const Dim& of) {
    propagate(by, {1, infinite});
    if (!by.is_constant()) {
      equal(of % by, 0);
      return;
    }
    const std::int64_t divisor = by.constant();
    if (divisor == 1) return;
    if (of.is_constant()) {
      if (of.constant() % divisor != 0) conflict();
      return;
    }
    const DimPoly& poly = *poly_of(of);
    std::int64_t common = std::abs(poly.constant);
    for (const DimTerm& term : poly.terms) common = std::gcd(common, term.coefficient);
    const std::int64_t wanted = divisor / std::gcd(divisor, common);
    if (wanted == 1) return;
    if (poly.constant == 0 && poly.terms.size() == 1) {
      const std::vector<Atom>& factors = poly.terms[0].factors;
      if (factors.size() > 1) {
        std::int64_t& known = product(factors).factor;
        if (common_multiple(known, wanted) < INT64_MAX) {
          known = static_cast<std::int64_t>(common_multiple(known, wanted));
        }
      } else if (factors[0]->kind == DimAtom::Kind::symbol) {
        set_factor(factors[0], wanted);
        return;
      }
    }
    // A multiple of what divides all its terms: a rest that does not vanish is a rule.
    equal(of % by, 0);
  }

  void set_factor(const Atom& symbol, std::int64_t factor) {
    const std::size_t index = index_of(symbol);
    if (index == state_.symbols.size()) return;
    SymbolFact& fact = state_.symbols[index];
    const Wide both = common_multiple(fact.factor, factor);
    if (both > fact.high) {  // 0 is the only multiple left
      if (fact.low > 0) conflict();
      narrow(index, {0, 0});
      return;
    }
    changed_ = changed_ || both != fact.factor;
    fact.factor = static_cast<std::int64_t>(both);
    narrow(index, {});
  }

  /// form / what divides every term and is not 0.
  Dim without_common_factors(Dim form) {
    const DimPoly& poly = *poly_of(form);
    std::int64_t common = std::abs(poly.constant);
    for (const DimTerm& term : poly.terms) common = std::gcd(common, term.coefficient);
    std::vector<DimTerm> terms = poly.terms;
    for (DimTerm& term : terms) term.coefficient /= common;
    if (poly.constant == 0) {
      const std::vector<Atom> candidates = terms[0].factors;
      std::vector<Atom> rest;
      for (const Atom& atom : candidates) {
        if (state_.interval(atom).low < 1) continue;
        const bool everywhere = std::all_of(terms.begin(), terms.end(), [&](const DimTerm& term) {
          return contains(term.factors, {atom}, rest);
        });
        if (!everywhere) continue;
        for (DimTerm& term : terms) {
          contains(term.factors, {atom}, rest);
          term.factors = rest;
        }
      }
    }
    Dim result = poly.constant / common;
    for (DimTerm& term : terms) result = result + dim_of(std::move(term));
    return result;
  }

  void equal(const Dim& left, const Dim& right) {
    Dim form = reduce(left - right);
    if (is_replaced(form)) {  // after a long chain of replacements: the next round sees it flat
      changed_ = true;
      return;
    }
    if (form.is_constant()) {
      if (!form.is(0)) conflict();
      return;
    }
    std::int64_t common = 0;
    for (const DimTerm& term : poly_of(form)->terms) common = std::gcd(common, state_.factor(term));
    if (poly_of(form)->constant % common != 0) conflict();
    form = without_common_factors(std::move(form));
    propagate(form, {0, 0});
    if (is_replaced(form)) return;  // by a constant, just now
    if (replace_symbol(form)) return;
    const bool lone = poly_of(form)->constant == 0 && poly_of(form)->terms.size() == 1;
    const Atom& first = poly_of(form)->terms[0].factors[0];
    if (lone && is_power(poly_of(form)->terms[0])) {
      if (const std::size_t symbol = index_of(first); symbol < state_.symbols.size())
        return narrow(symbol, {0, 0});
    }
    if (lone && poly_of(form)->terms[0].factors.size() == 1 && first->kind == DimAtom::Kind::remainder &&
        first->divisor.is_constant() && !in_remainder_) {
      in_remainder_ = true;
      divides(first->divisor, first->dividend);
      in_remainder_ = false;
      return;
    }
    add_rule(form);
    add_nonnegative(form);
    add_nonnegative(Dim(0) - form);
  }

  static bool is_power(const DimTerm& term) {
    return std::all_of(term.factors.begin(), term.factors.end(),
                       [&](const Atom& factor) { return factor->name == term.factors[0]->name; });
  }

  /// s = rest for a symbol that stands in one term, alone; one that leaves no negative term if there is one,
  /// else the one declared last.
  bool replace_symbol(const Dim& form) {
    std::unordered_map<std::string, int> uses;
    for_each_symbol(form, [&](const Atom& symbol) { ++uses[symbol->name]; });
    const std::vector<DimTerm>& terms = poly_of(form)->terms;
    if (size(form, max_replacement) > max_replacement) return false;
    std::optional<std::pair<bool, std::size_t>> best;
    Dim rest;
    for (const DimTerm& term : terms) {
      if (term.factors.size() != 1 || std::abs(term.coefficient) != 1) continue;
      const Atom& symbol = term.factors[0];
      const std::size_t index = index_of(symbol);
      if (uses[symbol->name] != 1 || index == state_.symbols.size()) continue;
      Dim others = form - dim_of(term);
      if (term.coefficient == 1) others = Dim(0) - others;
      bool positive = !poly_of(others) || poly_of(others)->constant >= 0;
      if (poly_of(others)) {
        for (const DimTerm& other : poly_of(others)->terms) positive = positive && other.coefficient > 0;
      }
      if (best && *best >= std::pair(positive, index)) continue;
      best = {positive, index};
      rest = std::move(others);
    }
    if (!best) return false;
    SymbolFact& fact = state_.symbols[best->second];
    fact.replaced = rest;
    changed_ = true;
    order_.push_back({best->second, now_});
    if (const std::string name(rest.name()); !name.empty()) {
      if (const auto found = state_.by_name.find(name); found != state_.by_name.end()) {
        SymbolFact& other = state_.symbols[found->second];
        if (other.hint == 0) other.hint = fact.hint;
      }
    }
    keep_range_of_replaced(Replaced(order_.back()));
    return true;
  }

  /// The term with most factors, the last of them, is replaced by the others.
  void add_rule(Dim form) {
    const DimTerm* lead = nullptr;
    for (const DimTerm& term : poly_of(form)->terms) {  // sorted by factors
      if (!lead || term.factors.size() >= lead->factors.size()) lead = &term;
    }
    Rule rule{*lead, dim_of(*lead) - form};
    if (rule.lead.coefficient < 0) {
      rule.lead.coefficient = -rule.lead.coefficient;
      rule.rest = Dim(0) - rule.rest;
    }
    state_.forms.rules_of[first_key(rule.lead.factors)].push_back(state_.forms.rules.size());
    state_.forms.rules.push_back(std::move(rule));
  }

  Facts::State& state_;
  std::span<const Constraint> constraints_;
  std::vector<Replaced> order_;  ///< in the order of replacement
  bool in_remainder_ = false;    ///< a remainder is being turned into a factor
  std::size_t now_ = 0;          ///< the constraint at hand
  bool changed_ = false;
};

void finish(Facts::State& state) {
  for (SymbolFact& fact : state.symbols) {
    const DimRange& declared = fact.declared.range;
    std::int64_t hint = fact.hint;
    if (hint != 0) hint = std::clamp(hint, fact.low, fact.high);
    const bool same_range = fact.low == declared.min && fact.high == declared.max && hint == declared.hint;
    fact.narrowed = same_range              ? fact.dim
                    : fact.low == fact.high ? Dim(fact.low)
                                            : Dim::symbol(fact.declared.name, {fact.low, fact.high, hint});
    fact.touched = !same_range || fact.replaced;
  }
}

}  // namespace

void solve(Facts::State& state, const std::vector<ir::Symbol>& symbols,
           std::span<const Constraint> constraints) {
  for (const ir::Symbol& symbol : symbols) {
    state.by_name.emplace(symbol.name, state.symbols.size());
    state.symbols.push_back({.declared = symbol,
                             .dim = Dim::symbol(symbol.name, symbol.range),
                             .low = symbol.range.min,
                             .high = symbol.range.max,
                             .hint = symbol.range.hint,
                             .narrowed = Dim::symbol(symbol.name, symbol.range)});
  }
  Solver(state, constraints).run();
  finish(state);
}

}  // namespace fuse::analysis
