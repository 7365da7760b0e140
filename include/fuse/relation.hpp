// DimRelation: what a graph may assume about its extents.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <fuse/export.hpp>
#include <string>

namespace fuse {
inline namespace v0 {

/// A statement about two extents, made by the functions below and given to Graph::assume.
struct FUSE_COMPILER_API DimRelation {
  /// What the statement says.
  enum class Kind : std::uint8_t {
    equal,    ///< left = right
    at_most,  ///< left <= right
    divides,  ///< right is a multiple of left, which is 1 or more
    one_or,   ///< left is 1 or right
  };
  Kind kind = Kind::equal;  ///< what the statement says
  ///@{
  /// The two extents.
  Dim left{}, right{};
  ///@}

  /// "S0 = S2 * S3", "B <= 4096", "8 divides B", "K = 1 or N": both messages and `.fuse` text.
  std::string to_string() const;
  /// Whether it holds for two values.
  bool holds(std::int64_t left_value, std::int64_t right_value) const;
  /// True when kind and extents are equal; the values of symbols are not asked.
  bool operator==(const DimRelation&) const = default;
};

/// a = b.
FUSE_COMPILER_API DimRelation equal(const Dim& a, const Dim& b);
/// The relation that a is a multiple of `by`; `by` is at least 1.
FUSE_COMPILER_API DimRelation divisible(const Dim& a, const Dim& by);
/// a <= most.
FUSE_COMPILER_API DimRelation at_most(const Dim& a, const Dim& most);
/// a >= least.
FUSE_COMPILER_API DimRelation at_least(const Dim& a, const Dim& least);
/// a = 1 or a = whole; which of the two, the dims say. An operator whose one operand has the extent `a` and
/// whose other operand has `whole` there repeats the first operand in the runs in which a is 1 (BladeDISC,
/// 2.2). Give it to Graph::assume before the operator is built: one that is built earlier takes the two
/// extents as equal.
FUSE_COMPILER_API DimRelation one_or(const Dim& a, const Dim& whole);

}  // namespace v0
}  // namespace fuse
