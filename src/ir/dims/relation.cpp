// SPDX-License-Identifier: Apache-2.0
#include <fuse/relation.hpp>

namespace fuse {
inline namespace v0 {

std::string DimRelation::to_string() const {
  const auto joined = [&](const char* sign) { return left.to_string() + sign + right.to_string(); };
  switch (kind) {
    case Kind::equal:
      return joined(" = ");
    case Kind::at_most:
      return joined(" <= ");
    case Kind::divides:
      return joined(" divides ");
    case Kind::one_or:
      return joined(" = 1 or ");
  }
  return {};
}

bool DimRelation::holds(std::int64_t left_value, std::int64_t right_value) const {
  switch (kind) {
    case Kind::equal:
      return left_value == right_value;
    case Kind::at_most:
      return left_value <= right_value;
    case Kind::divides:
      return left_value >= 1 && right_value % left_value == 0;
    case Kind::one_or:
      return left_value == 1 || left_value == right_value;
  }
  return false;
}

DimRelation equal(const Dim& a, const Dim& b) { return {DimRelation::Kind::equal, a, b}; }
DimRelation divisible(const Dim& a, const Dim& by) { return {DimRelation::Kind::divides, by, a}; }
DimRelation at_most(const Dim& a, const Dim& most) { return {DimRelation::Kind::at_most, a, most}; }
DimRelation at_least(const Dim& a, const Dim& least) { return {DimRelation::Kind::at_most, least, a}; }
DimRelation one_or(const Dim& a, const Dim& whole) { return {DimRelation::Kind::one_or, a, whole}; }

}  // namespace v0
}  // namespace fuse
