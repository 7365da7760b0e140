// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <fuse/dim.hpp>
#include <fuse/error.hpp>
#include <numeric>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"

namespace fuse {
inline namespace v0 {

using detail::Atom;
using detail::DimAtom;
using detail::DimPoly;
using detail::DimTerm;
using Kind = DimAtom::Kind;

namespace {

[[noreturn]] void overflow() {
  throw Error({.code = ErrorCode::invalid_extent, .message = "arithmetic on extents overflows 63 bits"});
}

std::int64_t checked_add(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_add_overflow(a, b, &result)) overflow();
  return result;
}

std::int64_t checked_mul(std::int64_t a, std::int64_t b) {
  std::int64_t result;
  if (__builtin_mul_overflow(a, b, &result)) overflow();
  return result;
}

std::int64_t floor_div(std::int64_t a, std::int64_t b) {
  if (b == 0) throw Error({.code = ErrorCode::invalid_extent, .message = "division of an extent by zero"});
  if (b == -1) return checked_mul(a, -1);
  return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

std::int64_t floor_mod(std::int64_t a, std::int64_t b) {
  if (b == -1) return 0;
  if (b == 0) floor_div(a, b);
  const std::int64_t rest = a % b;
  return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

int compare_atoms(const Atom& a, const Atom& b) {
  if (a == b) return 0;
  if (a->kind != b->kind) return a->kind < b->kind ? -1 : 1;
  if (const int order = a->name.compare(b->name)) return order;
  if (a->kind == Kind::symbol) {
    const auto key = [](const Atom& x) { return std::array{x->range.min, x->range.max, x->range.hint}; };
    return key(a) == key(b) ? 0 : key(a) < key(b) ? -1 : 1;
  }
  if (a->kind == Kind::index) return compare(a->extent, b->extent);
  if (const int order = compare(a->dividend, b->dividend)) return order;
  return compare(a->divisor, b->divisor);
}

int compare_factors(const std::vector<Atom>& a, const std::vector<Atom>& b) {
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i) {
    if (const int order = compare_atoms(a[i], b[i])) return order;
  }
  return a.size() == b.size() ? 0 : a.size() < b.size() ? -1 : 1;
}

const std::vector<DimTerm>& terms_of(const Dim& dim) {
  static const std::vector<DimTerm> none;
  return poly_of(dim) ? poly_of(dim)->terms : none;
}
std::int64_t constant_of(const Dim& dim) { return poly_of(dim) ? poly_of(dim)->constant : dim.constant(); }

/// The sole atom when the expression is one, else null.
Atom sole_atom(const Dim& dim) {
  const DimPoly* poly = poly_of(dim);
  if (!poly || poly->constant != 0 || poly->terms.size() != 1) return nullptr;
  const DimTerm& term = poly->terms[0];
  return term.coefficient == 1 && term.factors.size() == 1 ? term.factors[0] : nullptr;
}

/// term / divisor when it comes out; the divisor has one term.
bool divide_term(const DimTerm& term, std::int64_t coefficient, const std::vector<Atom>& factors,
                 DimTerm& out) {
  if (term.coefficient % coefficient != 0) return false;
  out = {term.coefficient / coefficient, term.factors};
  for (const Atom& factor : factors) {
    const auto at = std::find_if(out.factors.begin(), out.factors.end(),
                                 [&](const Atom& other) { return compare_atoms(factor, other) == 0; });
    if (at == out.factors.end()) return false;
    out.factors.erase(at);
  }
  return true;
}

/// dividend = quotient * divisor + rest, with as much in the quotient as comes out term by term.
struct Split {
  Dim quotient, rest;
};

Split split(const Dim& dividend, const Dim& divisor) {
  const DimPoly* poly = poly_of(divisor);
  if (poly && (poly->constant != 0 || poly->terms.size() != 1)) {
    return dividend == divisor ? Split{1, 0} : Split{0, dividend};
  }
  const std::int64_t coefficient = poly ? poly->terms[0].coefficient : divisor.constant();
  const std::vector<Atom> factors = poly ? poly->terms[0].factors : std::vector<Atom>{};
  std::vector<DimTerm> quotient, rest;
  std::int64_t quotient_constant = 0;
  for (const DimTerm& term : terms_of(dividend)) {
    DimTerm divided;
    if (!divide_term(term, coefficient, factors, divided)) {
      rest.push_back(term);
    } else if (divided.factors.empty()) {
      quotient_constant = checked_add(quotient_constant, divided.coefficient);
    } else {
      quotient.push_back(std::move(divided));
    }
  }
  std::int64_t constant = constant_of(dividend);
  if (!poly) {
    quotient_constant = checked_add(quotient_constant, floor_div(constant, coefficient));
    constant = floor_mod(constant, coefficient);
  }
  return {DimPoly::make(std::move(quotient), quotient_constant), DimPoly::make(std::move(rest), constant)};
}

/// The greatest common divisor of all coefficients.
std::int64_t content(const Dim& dim) {
  std::int64_t result = std::abs(constant_of(dim));
  for (const DimTerm& term : terms_of(dim)) result = std::gcd(result, term.coefficient);
  return result;
}

Dim divide_exactly(const Dim& dim, std::int64_t by) {
  std::vector<DimTerm> terms = terms_of(dim);
  for (DimTerm& term : terms) term.coefficient /= by;
  return DimPoly::make(std::move(terms), constant_of(dim) / by);
}

bool within(const Dim& value, const Dim& extent) { return proven_le(0, value) && proven_less(value, extent); }

/// dim = unit * multiple + rest, where the unit divides `by` and 0 <= rest < unit.
struct Grouped {
  std::int64_t unit = 1;
  Dim multiple, rest;
};

/// The dim in groups as large as there are: 8 g + v, v below 8, is group g. A unit of 1 where there are none.
Grouped grouped(const Dim& dim, const Dim& divisor) {
  Grouped best;
  const std::int64_t by = content(divisor);
  if (by <= 1 || divisor.min() < 0) return best;
  for (const DimTerm& candidate : terms_of(dim)) {
    const std::int64_t unit = std::gcd(candidate.coefficient, by);
    if (unit <= best.unit) continue;
    std::vector<DimTerm> multiple, rest;
    for (const DimTerm& term : terms_of(dim))
      (term.coefficient % unit == 0 ? multiple : rest).push_back(term);
    const std::int64_t constant = constant_of(dim);
    Dim left = DimPoly::make(std::move(rest), floor_mod(constant, unit));
    if (!within(left, unit)) continue;
    const Dim whole = DimPoly::make(std::move(multiple), constant - floor_mod(constant, unit));
    best = {unit, divide_exactly(whole, unit), std::move(left)};
  }
  return best;
}

Dim division_atom(Kind kind, Dim dividend, Dim divisor) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = kind;
  atom->dividend = std::move(dividend);
  atom->divisor = std::move(divisor);
  return DimPoly::of(std::move(atom));
}

/// k c (y / c) + k (y % c) = k y: what is left of an index that was taken apart and put together again.
bool recombine(std::vector<DimTerm>& terms, std::int64_t& constant) {
  for (std::size_t i = 0; i < terms.size(); ++i) {
    for (std::size_t f = 0; f < terms[i].factors.size(); ++f) {
      const Atom remainder = terms[i].factors[f];
      if (remainder->kind != Kind::remainder) continue;
      DimTerm scale = terms[i];
      scale.factors.erase(scale.factors.begin() + static_cast<std::ptrdiff_t>(f));
      const Dim k = scale.factors.empty() ? Dim(scale.coefficient) : DimPoly::make({scale}, 0);
      const Dim quotient = k * remainder->divisor * (remainder->dividend / remainder->divisor);
      if (!poly_of(quotient) || poly_of(quotient)->terms.size() != 1 || poly_of(quotient)->constant != 0)
        continue;
      const DimTerm& wanted = poly_of(quotient)->terms[0];
      for (std::size_t j = 0; j < terms.size(); ++j) {
        if (j == i || terms[j].coefficient != wanted.coefficient) continue;
        if (compare_factors(terms[j].factors, wanted.factors) != 0) continue;
        const Dim whole = k * remainder->dividend;
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::max(i, j)));
        terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(std::min(i, j)));
        for (const DimTerm& term : terms_of(whole)) terms.push_back(term);
        constant = checked_add(constant, constant_of(whole));
        return true;
      }
    }
  }
  return false;
}

void sort_and_merge(std::vector<DimTerm>& terms) {
  std::sort(terms.begin(), terms.end(),
            [](const DimTerm& a, const DimTerm& b) { return compare_factors(a.factors, b.factors) < 0; });
  std::size_t kept = 0;
  for (std::size_t i = 0; i < terms.size(); ++i) {
    if (kept && compare_factors(terms[kept - 1].factors, terms[i].factors) == 0) {
      terms[kept - 1].coefficient = checked_add(terms[kept - 1].coefficient, terms[i].coefficient);
    } else {
      if (kept && terms[kept - 1].coefficient == 0) --kept;
      if (kept != i) terms[kept] = std::move(terms[i]);
      ++kept;
    }
  }
  if (kept && terms[kept - 1].coefficient == 0) --kept;
  terms.resize(kept);
}

// Interval arithmetic; the ends of int64 mean "no bound".
struct Interval {
  std::int64_t low, high;
};
constexpr std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
constexpr std::int64_t highest = std::numeric_limits<std::int64_t>::max();

std::int64_t saturate(__int128 value) {
  return value < lowest ? lowest : value > highest ? highest : static_cast<std::int64_t>(value);
}

bool unbounded(std::int64_t value) { return value == lowest || value == highest; }

Interval add(Interval a, Interval b) {
  return {
      unbounded(a.low) || unbounded(b.low) ? lowest : saturate(static_cast<__int128>(a.low) + b.low),
      unbounded(a.high) || unbounded(b.high) ? highest : saturate(static_cast<__int128>(a.high) + b.high)};
}

Interval multiply(Interval a, Interval b) {
  const __int128 corners[] = {static_cast<__int128>(a.low) * b.low, static_cast<__int128>(a.low) * b.high,
                              static_cast<__int128>(a.high) * b.low, static_cast<__int128>(a.high) * b.high};
  return {saturate(*std::min_element(corners, corners + 4)),
          saturate(*std::max_element(corners, corners + 4))};
}

/// Of a floor division, whose divisor is not 0.
Interval quotient_bounds(Interval a, Interval b) {
  if (b.low < 0) {  // of either sign: |a / b| is at most |a|
    if (unbounded(a.low) || unbounded(a.high)) return {lowest, highest};
    const __int128 most = std::max(-static_cast<__int128>(a.low), static_cast<__int128>(a.high));
    return {saturate(-most), saturate(most)};
  }
  const std::int64_t least = std::max<std::int64_t>(b.low, 1), most = std::max<std::int64_t>(b.high, 1);
  const std::int64_t low = a.low == lowest ? lowest
                           : a.low < 0     ? floor_div(a.low, least)
                                           : (most == highest ? 0 : a.low / most);
  const std::int64_t high = a.high == highest ? highest
                            : a.high >= 0     ? a.high / least
                                              : (most == highest ? -1 : floor_div(a.high, most));
  return {low, high};
}

Interval bounds(const Dim& dim);

Interval bounds(const DimAtom& atom) {
  switch (atom.kind) {
    case Kind::symbol:
      return {atom.range.min, atom.range.max};
    case Kind::index: {
      const std::int64_t extent = bounds(atom.extent).high;
      return {0, extent == highest ? highest : std::max<std::int64_t>(extent - 1, 0)};
    }
    case Kind::quotient:
      return quotient_bounds(bounds(atom.dividend), bounds(atom.divisor));
    case Kind::remainder: {
      const Interval a = bounds(atom.dividend), b = bounds(atom.divisor);
      const std::int64_t below = b.high == highest ? highest : std::max<std::int64_t>(b.high - 1, 0);
      if (b.low < 0) return {b.low == lowest ? lowest : b.low + 1, below};
      return {0, a.low >= 0 ? std::min(a.high, below) : below};
    }
  }
  return {lowest, highest};
}

Interval bounds(const Dim& dim) {
  if (dim.is_constant()) return {dim.constant(), dim.constant()};
  Interval sum{poly_of(dim)->constant, poly_of(dim)->constant};
  for (const DimTerm& term : poly_of(dim)->terms) {
    Interval product{term.coefficient, term.coefficient};
    for (const Atom& factor : term.factors) product = multiply(product, bounds(*factor));
    sum = add(sum, product);
  }
  return sum;
}

/// dim = slope * atom + rest, with neither slope nor rest multiplying by the atom again; false otherwise.
bool linear_in(const Dim& dim, const Atom& atom, Dim& slope, Dim& rest) {
  std::vector<DimTerm> slope_terms, rest_terms;
  std::int64_t slope_constant = 0;
  for (const DimTerm& term : poly_of(dim)->terms) {
    DimTerm divided;
    if (!divide_term(term, 1, {atom}, divided)) {
      rest_terms.push_back(term);
    } else if (divided.factors.empty()) {
      slope_constant = divided.coefficient;
    } else {
      DimTerm again;
      if (divide_term(divided, 1, {atom}, again)) return false;
      slope_terms.push_back(std::move(divided));
    }
  }
  slope = DimPoly::make(std::move(slope_terms), slope_constant);
  rest = DimPoly::make(std::move(rest_terms), poly_of(dim)->constant);
  return true;
}

/// The atom's contribution slope * atom from below, as an expression without the atom; false when unknown.
bool lower_contribution(const DimAtom& atom, const Dim& slope, Dim& out) {
  if (slope.min() >= 0) {
    const std::int64_t low = bounds(atom).low;
    if (low == lowest) return false;
    out = slope * low;
    return true;
  }
  if (slope.max() > 0) return false;
  switch (atom.kind) {
    case Kind::symbol:
      if (atom.range.max == highest) return false;
      out = slope * atom.range.max;
      return true;
    case Kind::index:
      out = slope * (atom.extent - 1);
      return true;
    case Kind::remainder:
      if (atom.divisor.min() < 0) return false;
      out = slope * (atom.divisor - 1);
      return true;
    case Kind::quotient: {  // slope = -k c: -k c (a / c) >= -k a
      const Split parts = split(slope, atom.divisor);
      if (parts.rest.is(0) && atom.divisor.min() >= 0) {
        out = parts.quotient * atom.dividend;
        return true;
      }
      if (atom.dividend.min() < 0 || atom.divisor.min() < 1) return false;
      out = slope * atom.dividend;  // a / c <= a; a bound by a constant was tried before
      return true;
    }
  }
  return false;
}

/// Eliminates atoms one at a time, each replaced by the end of its range that makes the expression smallest.
bool proven_nonnegative(Dim dim) {
  for (int round = 0; round < 64; ++round) {
    if (dim.min() >= 0) return true;
    if (dim.is_constant()) return false;
    // Atoms whose bound is an expression go first: symbols bound them and must still be there.
    std::vector<Atom> atoms;
    for (const DimTerm& term : poly_of(dim)->terms)
      atoms.insert(atoms.end(), term.factors.begin(), term.factors.end());
    std::stable_sort(atoms.begin(), atoms.end(), [](const Atom& a, const Atom& b) {
      return (a->kind == Kind::symbol) < (b->kind == Kind::symbol);
    });
    bool changed = false;
    for (const Atom& atom : atoms) {
      try {
        Dim slope, rest, contribution;
        if (!linear_in(dim, atom, slope, rest) || !lower_contribution(*atom, slope, contribution)) continue;
        dim = rest + contribution;
      } catch (const Error&) {
        continue;  // a bound that overflows proves nothing
      }
      changed = true;
      break;
    }
    if (!changed) return false;
  }
  return false;
}

void collect(const Dim& dim, std::vector<Dim>& out) {
  for (const DimTerm& term : terms_of(dim)) {
    for (const Atom& factor : term.factors) {
      if (factor->kind == Kind::symbol || factor->kind == Kind::index) {
        out.push_back(DimPoly::of(factor));
      } else {
        collect(factor->dividend, out);
        collect(factor->divisor, out);
      }
    }
  }
}

/// Rebuilds an expression with every name mapped.
Dim rebuild(const Dim& dim, const std::function<Dim(const Atom&)>& leaf) {
  Dim sum = constant_of(dim);
  for (const DimTerm& term : terms_of(dim)) {
    Dim product = term.coefficient;
    for (const Atom& factor : term.factors) {
      switch (factor->kind) {
        case Kind::symbol:
        case Kind::index:
          product = product * leaf(factor);
          break;
        case Kind::quotient:
          product = product * (rebuild(factor->dividend, leaf) / rebuild(factor->divisor, leaf));
          break;
        case Kind::remainder:
          product = product * (rebuild(factor->dividend, leaf) % rebuild(factor->divisor, leaf));
          break;
      }
    }
    sum = sum + product;
  }
  return sum;
}

std::int64_t evaluate_atom(const DimAtom& atom, detail::FunctionRef<std::int64_t(std::string_view)> of) {
  if (atom.kind == Kind::symbol || atom.kind == Kind::index) return of(atom.name);
  const std::int64_t dividend = atom.dividend.evaluate(of), divisor = atom.divisor.evaluate(of);
  return atom.kind == Kind::quotient ? floor_div(dividend, divisor) : floor_mod(dividend, divisor);
}

/// Appends dims as text; `truncates`: for a language whose division rounds toward zero.
struct Printer {
  bool truncates = false;

  std::string parenthesised(const Dim& dim) const {
    const bool plain = dim.is_constant() ? dim.constant() >= 0 : !dim.name().empty();
    return plain ? print(dim) : '(' + print(dim) + ')';
  }

  std::string print(const DimAtom& atom) const {
    if (atom.kind == Kind::symbol || atom.kind == Kind::index) return atom.name;
    const bool quotient = atom.kind == Kind::quotient;
    if (truncates && !(proven_le(0, atom.dividend) && proven_le(0, atom.divisor))) {
      return (quotient ? "floor_div(" : "floor_mod(") + print(atom.dividend) + ", " + print(atom.divisor) +
             ')';
    }
    return parenthesised(atom.dividend) + (quotient ? " / " : " % ") + parenthesised(atom.divisor);
  }

  std::string print(const Dim& dim) const {
    if (!poly_of(dim)) return std::to_string(dim.constant());
    std::string text;
    for (const DimTerm& term : poly_of(dim)->terms) {
      std::int64_t coefficient = term.coefficient;
      if (!text.empty()) {
        text += coefficient < 0 ? " - " : " + ";
        coefficient = std::abs(coefficient);
      } else if (coefficient == -1) {
        text += '-';
        coefficient = 1;
      }
      std::string product = coefficient == 1 ? "" : std::to_string(coefficient);
      for (const Atom& factor : term.factors) {
        if (!product.empty()) product += " * ";
        const bool division = factor->kind == Kind::quotient || factor->kind == Kind::remainder;
        const bool alone = coefficient == 1 && term.factors.size() == 1 && term.coefficient > 0;
        product += division && !alone ? '(' + print(*factor) + ')' : print(*factor);
      }
      text += product;
    }
    const std::int64_t constant = poly_of(dim)->constant;
    if (constant > 0) text += " + " + std::to_string(constant);
    if (constant < 0) text += " - " + std::to_string(constant).substr(1);
    return text;
  }
};

}  // namespace

}  // namespace v0

namespace detail {

Dim DimPoly::make(std::vector<DimTerm> terms, std::int64_t constant) {
  sort_and_merge(terms);
  while (recombine(terms, constant)) sort_and_merge(terms);
  Dim result = constant;
  if (terms.empty()) return result;
  auto poly = std::make_shared<DimPoly>();
  poly->terms = std::move(terms);
  poly->constant = constant;
  result.constant_ = 0;
  result.poly_ = std::move(poly);
  return result;
}

Dim DimPoly::of(Atom atom) { return make({{1, {std::move(atom)}}}, 0); }

std::string to_cxx(const Dim& dim) { return Printer{.truncates = true}.print(dim); }

}  // namespace detail

inline namespace v0 {

Dim Dim::symbol(std::string name, DimRange range) {
  auto atom = std::make_shared<DimAtom>();
  atom->name = std::move(name);
  atom->range = range;
  return DimPoly::of(std::move(atom));
}

Dim Dim::index(std::string name, Dim extent) {
  auto atom = std::make_shared<DimAtom>();
  atom->kind = Kind::index;
  atom->name = std::move(name);
  atom->extent = std::move(extent);
  return DimPoly::of(std::move(atom));
}

std::int64_t Dim::constant() const {
  if (!poly_) return constant_;
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "extent " + to_string() + " is not a constant"});
}

std::string_view Dim::name() const {
  const DimPoly* poly = poly_.get();
  if (!poly || poly->constant != 0 || poly->terms.size() != 1) return {};
  const DimTerm& term = poly->terms[0];
  return term.coefficient == 1 && term.factors.size() == 1 ? std::string_view(term.factors[0]->name)
                                                           : std::string_view();
}

std::int64_t Dim::min() const { return bounds(*this).low; }
std::int64_t Dim::max() const { return bounds(*this).high; }

std::int64_t Dim::hint() const {
  const auto leaf = [](const Atom& atom) -> Dim {
    if (atom->kind == Kind::index) return std::max<std::int64_t>(atom->extent.hint() - 1, 0);
    if (atom->range.hint) return atom->range.hint;
    const double low = static_cast<double>(std::max<std::int64_t>(atom->range.min, 1));
    const double middle = std::sqrt(low * static_cast<double>(std::max<std::int64_t>(atom->range.max, 1)));
    return std::clamp(static_cast<std::int64_t>(middle), atom->range.min, atom->range.max);
  };
  try {
    return rebuild(*this, leaf).constant();
  } catch (const Error&) {  // hints of several symbols may multiply beyond 63 bits, as no real extents do
    return max();
  }
}

std::vector<Dim> Dim::symbols() const {
  std::vector<Dim> result;
  collect(*this, result);
  std::sort(result.begin(), result.end(), [](const Dim& a, const Dim& b) { return a.name() < b.name(); });
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::int64_t Dim::evaluate(detail::FunctionRef<std::int64_t(std::string_view)> of) const {
  if (!poly_) return constant_;
  std::int64_t sum = poly_->constant;
  for (const DimTerm& term : poly_->terms) {
    std::int64_t product = term.coefficient;
    bool overflows = false;  // unless a later factor is 0
    for (const Atom& factor : term.factors) {
      const std::int64_t value = evaluate_atom(*factor, of);
      overflows = value != 0 && (__builtin_mul_overflow(product, value, &product) || overflows);
      if (value == 0) product = 0;
    }
    if (overflows) overflow();
    sum = checked_add(sum, product);
  }
  return sum;
}

Dim Dim::substitute(std::string_view name, const Dim& by) const {
  return substitute([&](std::string_view symbol) { return symbol == name ? &by : nullptr; });
}

Dim Dim::substitute(detail::FunctionRef<const Dim*(std::string_view)> of) const {
  if (!poly_) return *this;
  return rebuild(*this, [&](const Atom& atom) {
    const Dim* by = of(atom->name);
    return by ? *by : DimPoly::of(atom);
  });
}

std::string Dim::to_string() const { return Printer{}.print(*this); }

Dim operator+(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return checked_add(a.constant_, b.constant_);
  if (a.is(0)) return b;
  if (b.is(0)) return a;
  std::vector<DimTerm> terms = terms_of(a);
  for (const DimTerm& term : terms_of(b)) terms.push_back(term);
  return DimPoly::make(std::move(terms), checked_add(constant_of(a), constant_of(b)));
}

Dim operator-(const Dim& a, const Dim& b) { return a + b * -1; }

Dim operator*(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return checked_mul(a.constant_, b.constant_);
  if (a.is(1)) return b;
  if (b.is(1)) return a;
  std::vector<DimTerm> terms;
  const std::vector<DimTerm>&left = terms_of(a), &right = terms_of(b);
  for (const DimTerm& x : left) {
    for (const DimTerm& y : right) {
      DimTerm product{checked_mul(x.coefficient, y.coefficient), x.factors};
      product.factors.insert(product.factors.end(), y.factors.begin(), y.factors.end());
      std::sort(product.factors.begin(), product.factors.end(),
                [](const Atom& p, const Atom& q) { return compare_atoms(p, q) < 0; });
      terms.push_back(std::move(product));
    }
    if (const std::int64_t c = constant_of(b)) terms.push_back({checked_mul(x.coefficient, c), x.factors});
  }
  for (const DimTerm& y : right) {
    if (const std::int64_t c = constant_of(a)) terms.push_back({checked_mul(y.coefficient, c), y.factors});
  }
  return DimPoly::make(std::move(terms), checked_mul(constant_of(a), constant_of(b)));
}

Dim operator/(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return floor_div(a.constant_, b.constant_);
  if (b.is(1)) return a;
  if (b.is(0)) floor_div(1, 0);
  if (b.max() < 0) return (a * -1) / (b * -1);
  auto [quotient, rest] = split(a, b);
  if (rest.is(0) || within(rest, b)) return quotient;
  if (b.is_constant()) {
    if (const std::int64_t common = std::gcd(content(rest), b.constant()); common > 1) {
      return quotient + divide_exactly(rest, common) / (b.constant() / common);
    }
  }
  if (const Grouped groups = grouped(rest, b); groups.unit > 1)
    return quotient + groups.multiple / divide_exactly(b, groups.unit);
  if (const Atom atom = sole_atom(rest);
      atom && atom->kind == Kind::quotient && atom->divisor.min() >= 0 && b.min() >= 0) {
    return quotient + atom->dividend / (atom->divisor * b);
  }
  return quotient + division_atom(Kind::quotient, rest, b);
}

Dim operator%(const Dim& a, const Dim& b) {
  if (!a.poly_ && !b.poly_) return floor_mod(a.constant_, b.constant_ == 0 ? floor_div(1, 0) : b.constant_);
  if (b.is(1)) return 0;
  if (b.is(0)) floor_div(1, 0);
  if (b.max() < 0) return ((a * -1) % (b * -1)) * -1;
  const Dim rest = split(a, b).rest;
  if (rest.is(0) || within(rest, b)) return rest;
  if (b.is_constant()) {
    if (const std::int64_t common = std::gcd(content(rest), b.constant()); common > 1) {
      return Dim(common) * (divide_exactly(rest, common) % (b.constant() / common));
    }
  }
  if (const Grouped groups = grouped(rest, b); groups.unit > 1)
    return Dim(groups.unit) * (groups.multiple % divide_exactly(b, groups.unit)) + groups.rest;
  if (const Atom atom = sole_atom(rest); atom && atom->kind == Kind::remainder) {
    if (proven_divisible(atom->divisor, b)) return atom->dividend % b;
  }
  return division_atom(Kind::remainder, rest, b);
}

int compare(const Dim& a, const Dim& b) {
  if (a.poly_ == b.poly_) return a.constant_ == b.constant_ ? 0 : a.constant_ < b.constant_ ? -1 : 1;
  if (!a.poly_ || !b.poly_) return a.poly_ ? 1 : -1;
  const auto& x = a.poly_->terms;
  const auto& y = b.poly_->terms;
  for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
    if (const int order = compare_factors(x[i].factors, y[i].factors)) return order;
    if (x[i].coefficient != y[i].coefficient) return x[i].coefficient < y[i].coefficient ? -1 : 1;
  }
  if (x.size() != y.size()) return x.size() < y.size() ? -1 : 1;
  const std::int64_t p = a.poly_->constant, q = b.poly_->constant;
  return p == q ? 0 : p < q ? -1 : 1;
}

bool operator==(const Dim& a, const Dim& b) { return compare(a, b) == 0; }

Dim ceil_div(const Dim& a, const Dim& b) { return (a + b - 1) / b; }

Dim product(const std::vector<Dim>& dims) {
  Dim result = 1;
  for (const Dim& dim : dims) result = result * dim;
  return result;
}

bool proven_le(const Dim& a, const Dim& b) {
  if (a.is_constant() && b.is_constant()) return a.constant() <= b.constant();
  return proven_nonnegative(b - a);
}

bool proven_less(const Dim& a, const Dim& b) { return proven_le(a + 1, b); }

bool proven_divisible(const Dim& a, const Dim& b) {
  if (b.is(0)) return false;
  return split(a, b).rest.is(0);
}

}  // namespace v0
}  // namespace fuse
