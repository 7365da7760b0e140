// Sums of products, as Dim's canonical form has them: intervals, terms and their division.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "ir/dims/dim_poly.hpp"

namespace fuse::analysis {

using detail::Atom;
using detail::DimAtom;
using detail::DimPoly;
using detail::DimTerm;

/// Wide enough for a product of two extents; beyond +-infinite it saturates.
__extension__ using Wide = __int128;
constexpr Wide infinite = Wide{1} << 120;

/// All values of an expression lie in [low, high]; an end at -+infinite is no bound.
struct Interval {
  Wide low = -infinite, high = infinite;
  bool empty() const { return low > high; }
};
Interval add(Interval a, Interval b);
Interval multiply(Interval a, Interval b);
Interval negate(Interval a);
Interval intersect(Interval a, Interval b);
/// Rounded down and up, by 1 or more; what is infinite stays so.
Wide floor_divide(Wide a, Wide b);
Wide ceil_divide(Wide a, Wide b);
/// The integers whose products with `by`, which is not 0, lie in the interval.
Interval quotients(Interval of, Wide by);
std::int64_t clamp_to_int64(Wide);

bool same(const Atom& a, const Atom& b);
bool same(const std::vector<Atom>& a, const std::vector<Atom>& b);
/// Whether `part` is among the factors; `rest` gets the others.
bool contains(const std::vector<Atom>& factors, const std::vector<Atom>& part, std::vector<Atom>& rest);
/// A name for tables; for a symbol, its own.
std::string key(const Atom& atom);
/// The key of a product: the keys of all its factors.
std::string key(const std::vector<Atom>& factors);
/// The keys, of single factors and of pairs, under which a product may stand that is a part of these factors.
/// Tables have a product under its first two factors, since many share a first one (a batch).
std::set<std::string> part_keys(const std::vector<Atom>& factors);
std::string first_key(const std::vector<Atom>& factors);

Dim dim_of(DimTerm term);
/// A form of one term; a number is one without factors.
std::optional<DimTerm> as_term(const Dim&);
Dim dim_of(const std::vector<Atom>& factors);
/// Terms and factors, those inside divisions too; stops above `budget`.
std::size_t size(const Dim& dim, std::size_t budget);
/// Calls for every symbol, those inside divisions too, as often as it stands there.
void for_each_symbol(const Dim& dim, const std::function<void(const Atom&)>& use);
/// The expression with symbols mapped; loop indices stay.
Dim map_symbols(const Dim& dim, const std::function<Dim(const Atom&)>& of);

}  // namespace fuse::analysis
