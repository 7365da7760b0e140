// SPDX-License-Identifier: Apache-2.0
#include "analysis/polynomial.hpp"

#include <algorithm>
#include <limits>

#include "base/access.hpp"

namespace fuse::analysis {
namespace {

Wide saturate(Wide value) { return std::clamp(value, -infinite, infinite); }

Wide saturated_product(Wide a, Wide b) {
  Wide result = 0;
  if (__builtin_mul_overflow(a, b, &result)) return (a ^ b) < 0 ? -infinite : infinite;
  return saturate(result);
}

bool is_infinite(Wide value) { return value <= -infinite || value >= infinite; }

}  // namespace

Interval add(Interval a, Interval b) {
  return {a.low <= -infinite || b.low <= -infinite ? -infinite : saturate(a.low + b.low),
          a.high >= infinite || b.high >= infinite ? infinite : saturate(a.high + b.high)};
}

Interval multiply(Interval a, Interval b) {
  const Wide corners[] = {saturated_product(a.low, b.low), saturated_product(a.low, b.high),
                          saturated_product(a.high, b.low), saturated_product(a.high, b.high)};
  return {*std::min_element(corners, corners + 4), *std::max_element(corners, corners + 4)};
}

Interval negate(Interval a) { return {-a.high, -a.low}; }

Interval intersect(Interval a, Interval b) { return {std::max(a.low, b.low), std::min(a.high, b.high)}; }

Wide floor_divide(Wide a, Wide b) { return is_infinite(a) ? a : a / b - (a % b < 0); }

Wide ceil_divide(Wide a, Wide b) { return -floor_divide(-a, b); }

Interval quotients(Interval of, Wide by) {
  if (by < 1) return quotients(negate(of), -by);
  return {ceil_divide(of.low, by), floor_divide(of.high, by)};
}

std::int64_t clamp_to_int64(Wide value) {
  using Limits = std::numeric_limits<std::int64_t>;
  return static_cast<std::int64_t>(std::clamp<Wide>(value, Limits::min(), Limits::max()));
}

bool same(const Atom& a, const Atom& b) {
  return a->kind == b->kind && a->name == b->name && a->dividend == b->dividend && a->divisor == b->divisor;
}

bool same(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Atom& x, const Atom& y) { return same(x, y); });
}

bool contains(const std::vector<Atom>& factors, const std::vector<Atom>& part, std::vector<Atom>& rest) {
  if (part.size() > factors.size()) return false;
  rest = factors;
  for (const Atom& wanted : part) {
    const auto found =
        std::find_if(rest.begin(), rest.end(), [&](const Atom& factor) { return same(factor, wanted); });
    if (found == rest.end()) return false;
    rest.erase(found);
  }
  return true;
}

std::string key(const Atom& atom) { return DimPoly::of(atom).to_string(); }

std::string key(const std::vector<Atom>& factors) {
  std::string text;
  for (const Atom& factor : factors) text += (text.empty() ? "" : " * ") + key(factor);
  return text;
}

std::string first_key(const std::vector<Atom>& factors) {
  return factors.size() == 1 ? key(factors[0]) : key(factors[0]) + " * " + key(factors[1]);
}

std::set<std::string> part_keys(const std::vector<Atom>& factors) {
  std::vector<std::string> before;
  std::set<std::string> result;
  for (const Atom& factor : factors) {
    const std::string own = key(factor);
    for (const std::string& other : before) result.insert(other + " * " + own);
    result.insert(own);
    before.push_back(own);
  }
  return result;
}

Dim dim_of(DimTerm term) {
  if (term.factors.empty()) return term.coefficient;
  std::vector<DimTerm> terms;
  terms.push_back(std::move(term));
  return DimPoly::make(std::move(terms), 0);
}

std::optional<DimTerm> as_term(const Dim& dim) {
  if (dim.is_constant()) return DimTerm{dim.constant(), {}};
  const DimPoly& poly = *poly_of(dim);
  return poly.constant == 0 && poly.terms.size() == 1 ? std::optional(poly.terms[0]) : std::nullopt;
}

Dim dim_of(const std::vector<Atom>& factors) { return dim_of(DimTerm{1, factors}); }

std::size_t size(const Dim& dim, std::size_t budget) {
  std::size_t total = 1;
  if (!poly_of(dim)) return total;
  for (const DimTerm& term : poly_of(dim)->terms) {
    for (const Atom& factor : term.factors) {
      ++total;
      if (total > budget) return total;
      if (factor->kind != DimAtom::Kind::quotient && factor->kind != DimAtom::Kind::remainder) continue;
      total += size(factor->dividend, budget - total) + size(factor->divisor, budget);
    }
  }
  return total;
}

void for_each_symbol(const Dim& dim, const std::function<void(const Atom&)>& use) {
  if (!poly_of(dim)) return;
  for (const DimTerm& term : poly_of(dim)->terms) {
    for (const Atom& factor : term.factors) {
      if (factor->kind == DimAtom::Kind::symbol) {
        use(factor);
      } else {
        for_each_symbol(factor->dividend, use);
        for_each_symbol(factor->divisor, use);
      }
    }
  }
}

Dim map_symbols(const Dim& dim, const std::function<Dim(const Atom&)>& of) {
  if (!poly_of(dim)) return dim;
  Dim sum = poly_of(dim)->constant;
  for (const DimTerm& term : poly_of(dim)->terms) {
    Dim product = term.coefficient;
    for (const Atom& factor : term.factors) {
      switch (factor->kind) {
        case DimAtom::Kind::symbol:
          product = product * of(factor);
          break;
        case DimAtom::Kind::index:
          product = product * DimPoly::of(factor);
          break;
        case DimAtom::Kind::quotient:
          product = product * (map_symbols(factor->dividend, of) / map_symbols(factor->divisor, of));
          break;
        case DimAtom::Kind::remainder:
          product = product * (map_symbols(factor->dividend, of) % map_symbols(factor->divisor, of));
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

}  // namespace fuse::analysis
