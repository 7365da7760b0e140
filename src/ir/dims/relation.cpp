// SPDX-License-Identifier: Apache-2.0
#include <fuse/relation.hpp>

namespace fuse {
inline namespace v0 {

std::string DimRelation::to_string() const {
  const char* sign = kind == Kind::equal ? " = " : kind == Kind::at_most ? " <= " : " divides ";
  return left.to_string() + sign + right.to_string();
}

bool DimRelation::holds(std::int64_t left_value, std::int64_t right_value) const {
  switch (kind) {
    case Kind::equal:
      return left_value == right_value;
    case Kind::at_most:
      return left_value <= right_value;
    case Kind::divides:
      return left_value >= 1 && right_value % left_value == 0;
  }
  return false;
}

DimRelation equal(const Dim& a, const Dim& b) { return {DimRelation::Kind::equal, a, b}; }
DimRelation divisible(const Dim& a, const Dim& by) { return {DimRelation::Kind::divides, by, a}; }
DimRelation at_most(const Dim& a, const Dim& most) { return {DimRelation::Kind::at_most, a, most}; }
DimRelation at_least(const Dim& a, const Dim& least) { return {DimRelation::Kind::at_most, least, a}; }

}  // namespace v0
}  // namespace fuse
