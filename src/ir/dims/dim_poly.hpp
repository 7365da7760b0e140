// The canonical form behind Dim.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/dim.hpp>
#include <memory>
#include <string>
#include <vector>

namespace fuse::detail {

/// What a product multiplies: a name, or a division that did not come out.
struct DimAtom {
  enum class Kind : std::uint8_t { symbol, index, quotient, remainder };
  Kind kind = Kind::symbol;
  std::string name;       ///< symbol, index
  DimRange range;         ///< symbol
  Dim extent;             ///< index: exclusive upper bound
  Dim dividend, divisor;  ///< quotient (floor), remainder
};
using Atom = std::shared_ptr<const DimAtom>;

struct DimTerm {
  std::int64_t coefficient = 0;
  std::vector<Atom> factors;  ///< sorted, not empty
};

/// terms + constant; at least one term; terms sorted by factors, coefficients not zero.
struct DimPoly {
  std::vector<DimTerm> terms;
  std::int64_t constant = 0;

  static Dim make(std::vector<DimTerm> terms, std::int64_t constant);
  static Dim of(Atom atom);
};

/// As to_string, for C++ and CUDA, whose `/` and `%` round toward zero: where a dividend or a divisor may be
/// negative, floor_div(a, b) and floor_mod(a, b) stand in their place.
std::string to_cxx(const Dim& dim);

}  // namespace fuse::detail
