// SPDX-License-Identifier: Apache-2.0
#include "ir/dims/disproof.hpp"

#include <fmt/format.h>

#include <numeric>

#include "base/access.hpp"
#include "ir/dims/dim_poly.hpp"

namespace fuse::ir {

bool can_be_equal(const Dim& a, const Dim& b) {
  if (a == b) return true;
  if (a.is_constant() && b.is_constant()) return false;
  try {
    const Dim difference = a - b;
    if (difference.is_constant()) return difference.is(0);
    if (difference.min() > 0 || difference.max() < 0) return false;
    std::int64_t common = 0;
    for (const detail::DimTerm& term : poly_of(difference)->terms)
      common = std::gcd(common, term.coefficient);
    return poly_of(difference)->constant % common == 0;
  } catch (const Error&) {  // beyond 63 bits: nothing is shown
    return true;
  }
}

std::string disproof(const DimRelation& relation) {
  const auto& [kind, left, right] = relation;
  std::string ranges;
  for (const Dim& dim : {left, right}) {
    if (dim.is_constant()) continue;
    ranges +=
        fmt::format("{}{} is in [{}, {}]", ranges.empty() ? "" : ", ", dim.to_string(), dim.min(), dim.max());
  }
  if (ranges.empty()) ranges = "both are constants";
  try {
    switch (kind) {
      case DimRelation::Kind::equal:
        return can_be_equal(left, right) ? std::string() : ranges;
      case DimRelation::Kind::at_most:
        return proven_less(right, left) ? ranges : std::string();
      case DimRelation::Kind::one_or:
        return can_be_equal(left, 1) || can_be_equal(left, right) ? std::string() : ranges;
      case DimRelation::Kind::divides: {
        if (left.max() < 1) return fmt::format("the divisor {} is not 1 or more", left.to_string());
        if (!left.is_constant()) return {};
        const std::int64_t by = left.constant();
        if (right.is_constant()) return right.constant() % by == 0 ? std::string() : ranges;
        const std::int64_t low = right.min();
        const bool has_multiple = low <= 0 || (low - 1) / by < right.max() / by;
        return has_multiple ? std::string() : ranges;
      }
    }
  } catch (const Error&) {  // arithmetic beyond 63 bits disproves nothing: the bounds say what they say
  }
  return {};
}

}  // namespace fuse::ir
