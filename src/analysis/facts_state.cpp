// Rewriting, intervals and factors of forms over a graph's symbols.
// SPDX-License-Identifier: Apache-2.0
#include "analysis/facts_state.hpp"

#include <algorithm>
#include <numeric>

#include "base/access.hpp"

namespace fuse::analysis {
namespace {

// The most rewrites of one form; a form that needs more stays as it is, unproven.
constexpr int max_rewrites = 256;
constexpr std::size_t max_attempts = 16;  // inequalities tried at a level of a proof

std::int64_t times(std::int64_t a, std::int64_t b) {
  std::int64_t result = 0;
  return __builtin_mul_overflow(a, b, &result) ? std::max(a, b)
                                               : result;  // one of them still divides the product
}

/// What divides a number: the number itself, or what 64 bits hold of it.
std::int64_t factor_of(std::int64_t number) {
  return number == INT64_MIN ? std::int64_t{1} << 62 : std::abs(number);
}

}  // namespace

const SymbolFact* Facts::State::find(const std::string& name) const {
  const auto found = by_name.find(name);
  return found == by_name.end() ? nullptr : &symbols[found->second];
}

bool Facts::State::touches(const Dim& dim) const {
  bool found = !forms.rules.empty() && poly_of(dim);
  for_each_symbol(dim, [&](const Atom& symbol) {
    if (found) return;
    const SymbolFact* fact = find(symbol->name);
    found = fact && (fact->touched || fact->factor > 1);
  });
  return found;
}

Interval Facts::State::interval(const Atom& atom) const {
  switch (atom->kind) {
    case DimAtom::Kind::symbol: {
      const SymbolFact* fact = find(atom->name);
      if (!fact) return {atom->range.min, atom->range.max};
      return {fact->low, fact->high};
    }
    case DimAtom::Kind::index:
      return {};  // of a map from elements to elements, of which facts say nothing
    case DimAtom::Kind::quotient: {
      const Interval a = interval(atom->dividend), b = interval(atom->divisor);
      if (b.low < 1) return {};
      return {std::min(floor_divide(a.low, b.low), floor_divide(a.low, b.high)),
              std::max(floor_divide(a.high, b.low), floor_divide(a.high, b.high))};
    }
    case DimAtom::Kind::remainder: {
      const Interval a = interval(atom->dividend), b = interval(atom->divisor);
      if (b.low < 1) return {};
      return {a.high < b.low ? std::max<Wide>(a.low, 0) : 0,
              a.low >= 0 ? std::min(a.high, b.high - 1) : b.high - 1};
    }
  }
  return {};
}

/// Calls `f` with each product that something is known about and that divides the term, and with the factors
/// that it leaves.
template <class F>
void Facts::State::each_product_in(const DimTerm& term, F&& f) const {
  if (forms.products.empty()) return;
  std::vector<Atom> rest;
  for (const std::string& part : part_keys(term.factors)) {
    const auto candidates = forms.products_of.find(part);
    if (candidates == forms.products_of.end()) continue;
    for (const std::size_t i : candidates->second) {
      if (contains(term.factors, forms.products[i].factors, rest)) f(forms.products[i], rest);
    }
  }
}

Interval Facts::State::interval(const DimTerm& term) const {
  Interval plain{1, 1};
  for (const Atom& factor : term.factors) plain = multiply(plain, interval(factor));
  each_product_in(term, [&](const auto& product, const std::vector<Atom>& rest) {
    Interval known = product.bounds;
    for (const Atom& other : rest) known = multiply(known, interval(other));
    plain = intersect(plain, known);
  });
  return multiply({term.coefficient, term.coefficient}, plain);
}

Interval Facts::State::interval(const Dim& dim) const {
  if (!poly_of(dim)) return {dim.constant(), dim.constant()};
  Interval sum{poly_of(dim)->constant, poly_of(dim)->constant};
  for (const DimTerm& term : poly_of(dim)->terms) sum = add(sum, interval(term));
  return sum;
}

std::int64_t Facts::State::factor(const Atom& atom) const {
  switch (atom->kind) {
    case DimAtom::Kind::symbol: {
      const SymbolFact* fact = find(atom->name);
      return fact ? fact->factor : 1;
    }
    case DimAtom::Kind::index:
      return 1;
    case DimAtom::Kind::quotient: {
      if (!atom->divisor.is_constant()) return 1;
      const std::int64_t by = atom->divisor.constant(), known = factor(atom->dividend);
      return known % by == 0 ? known / by : 1;
    }
    case DimAtom::Kind::remainder:
      return std::gcd(factor(atom->dividend), factor(atom->divisor));
  }
  return 1;
}

std::int64_t Facts::State::factor(const DimTerm& term) const {
  std::int64_t best = 1;
  for (const Atom& atom : term.factors) best = times(best, std::max<std::int64_t>(factor(atom), 1));
  each_product_in(term, [&](const auto& product, const std::vector<Atom>& rest) {
    if (product.factor == 1) return;
    std::int64_t known = product.factor;
    for (const Atom& other : rest) known = times(known, std::max<std::int64_t>(factor(other), 1));
    best = times(best / std::gcd(best, known), known);
  });
  return times(factor_of(term.coefficient), best);
}

std::int64_t Facts::State::factor(const Dim& dim) const {
  if (!poly_of(dim)) return factor_of(dim.constant());
  std::int64_t result = poly_of(dim)->constant;
  for (const DimTerm& term : poly_of(dim)->terms) result = std::gcd(result, factor(term));
  return result;
}

/// The dividend without terms that a rule says are multiples of the divisor.
Dim Facts::State::without_multiples(const Dim& dividend, const Dim& divisor) const {
  if (!poly_of(dividend) || forms.rules.empty()) return dividend;
  Dim rest = dividend;
  for (const DimTerm& term : poly_of(dividend)->terms) {
    const bool multiple = std::any_of(term.factors.begin(), term.factors.end(), [&](const Atom& factor) {
      return apply_rules(DimPoly::of(factor) % divisor).is(0);
    });
    if (multiple) rest = rest - dim_of(term);
  }
  return rest;
}

Dim Facts::State::rewrite_atom(const Atom& atom) const {
  switch (atom->kind) {
    case DimAtom::Kind::symbol: {
      const SymbolFact* fact = find(atom->name);
      return !fact ? DimPoly::of(atom) : fact->replaced ? *fact->replaced : fact->dim;
    }
    case DimAtom::Kind::index:
      return DimPoly::of(atom);
    case DimAtom::Kind::quotient:
      return rewrite(atom->dividend) / rewrite(atom->divisor);
    case DimAtom::Kind::remainder: {
      const Dim dividend = rewrite(atom->dividend), divisor = rewrite(atom->divisor);
      if (divisor.is_constant() && divisor.constant() > 0 && factor(dividend) % divisor.constant() == 0) {
        return 0;
      }
      return without_multiples(dividend, divisor) % divisor;
    }
  }
  return DimPoly::of(atom);
}

Dim Facts::State::rewrite(const Dim& dim) const {
  if (!poly_of(dim)) return dim;
  // All terms are added up in one go: a concat of many dims has as many.
  std::vector<DimTerm> terms;
  Dim constant = poly_of(dim)->constant;
  for (const DimTerm& term : poly_of(dim)->terms) {
    Dim product = term.coefficient;
    for (const Atom& factor : term.factors) product = product * rewrite_atom(factor);
    if (const DimPoly* poly = poly_of(product)) {
      terms.insert(terms.end(), poly->terms.begin(), poly->terms.end());
      product = poly->constant;
    }
    constant = constant + product;
  }
  return apply_rules(DimPoly::make(std::move(terms), 0) + constant);
}

bool Facts::State::is_multiple(const Dim& dividend, const Dim& divisor) const {
  if (divisor.is_constant()) return factor(dividend) % divisor.constant() == 0;
  return apply_rules(dividend % divisor).is(0);
}

/// One step: an exact division in the term multiplied out, or a rule whose lead is part of it.
bool Facts::State::rewrite_term(const DimTerm& term, Dim& out) const {
  std::vector<Atom> rest;
  for (std::size_t i = 0; i < term.factors.size(); ++i) {
    const Atom& atom = term.factors[i];
    if (atom->kind != DimAtom::Kind::quotient) continue;
    const std::optional<DimTerm> by = as_term(atom->divisor);
    std::vector<Atom> others = term.factors;
    others.erase(others.begin() + static_cast<std::ptrdiff_t>(i));
    if (!by || term.coefficient % by->coefficient != 0 || !contains(others, by->factors, rest)) continue;
    if (!is_multiple(atom->dividend, atom->divisor)) continue;
    out = dim_of(DimTerm{term.coefficient / by->coefficient, rest}) * atom->dividend;
    return true;
  }
  if (forms.rules.empty()) return false;
  for (const std::string& part : part_keys(term.factors)) {
    const auto candidates = forms.rules_of.find(part);
    if (candidates == forms.rules_of.end()) continue;
    for (const std::size_t r : candidates->second) {
      const Rule& rule = forms.rules[r];
      if (term.coefficient % rule.lead.coefficient != 0 || !contains(term.factors, rule.lead.factors, rest)) {
        continue;
      }
      out = dim_of(DimTerm{term.coefficient / rule.lead.coefficient, rest}) * rule.rest;
      return true;
    }
  }
  return false;
}

Dim Facts::State::apply_rules(Dim dim) const {
  for (int round = 0; round < max_rewrites && poly_of(dim); ++round) {
    const std::vector<DimTerm>& terms = poly_of(dim)->terms;
    Dim by;
    const auto term =
        std::find_if(terms.begin(), terms.end(), [&](const DimTerm& t) { return rewrite_term(t, by); });
    if (term == terms.end()) break;
    dim = dim - dim_of(*term) + by;
  }
  return dim;
}

Dim Facts::State::narrow(const Dim& dim) const {
  return map_symbols(dim, [&](const Atom& symbol) {
    const SymbolFact* fact = find(symbol->name);
    return fact ? fact->narrowed : DimPoly::of(symbol);
  });
}

bool Facts::State::proves_nonnegative(const Dim& form, int depth) const {
  if (interval(form).low >= 0 || proven_le(0, narrow(form))) return true;
  if (depth == 0 || !poly_of(form)) return false;
  std::size_t attempts = 0;
  for (const DimTerm& term : poly_of(form)->terms) {
    const auto candidates = forms.nonnegative_of.find(key(term.factors));
    if (candidates == forms.nonnegative_of.end()) continue;
    for (const std::size_t i : candidates->second) {
      for (const DimTerm& known : poly_of(forms.nonnegative[i])->terms) {
        if (!same(known.factors, term.factors) || (known.coefficient ^ term.coefficient) < 0) continue;
        if (++attempts > max_attempts) return false;
        // form = rest + count * known, and known >= 0.
        const std::int64_t count = std::max<std::int64_t>(term.coefficient / known.coefficient, 1);
        try {
          if (proves_nonnegative(form - forms.nonnegative[i] * count, depth - 1)) return true;
        } catch (const Error&) {  // beyond 63 bits: this one proves nothing
        }
      }
    }
  }
  return false;
}

}  // namespace fuse::analysis
