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
  enum class Kind : std::uint8_t {
    equal,    ///< left = right
    at_most,  ///< left <= right
    divides,  ///< right is a multiple of left, which is 1 or more
  };
  Kind kind = Kind::equal;
  Dim left{}, right{};

  /// "S0 = S2 * S3", "B <= 4096", "8 divides B": both messages and `.fuse` text.
  std::string to_string() const;
  /// Whether it holds for two values.
  bool holds(std::int64_t left_value, std::int64_t right_value) const;
  bool operator==(const DimRelation&) const = default;
};

FUSE_COMPILER_API DimRelation equal(const Dim& a, const Dim& b);
FUSE_COMPILER_API DimRelation divisible(const Dim& a, const Dim& by);
FUSE_COMPILER_API DimRelation at_most(const Dim& a, const Dim& most);
FUSE_COMPILER_API DimRelation at_least(const Dim& a, const Dim& least);

}  // namespace v0
}  // namespace fuse
