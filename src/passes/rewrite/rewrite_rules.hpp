// The rules of simplify, as data: one row per rule.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "passes/rewrite/pattern.hpp"

namespace fuse::ir::algebra {

/// What a rule keeps of a value.
enum class Keeps : std::uint8_t {
  bits,     ///< every bit, -0 and infinities too; of a NaN, that it is one
  bound,    ///< the bound that the table states for the op (its ulps): the result is at most one rounding off
  algebra,  ///< what it means for real numbers: a relaxed rule, for those who opt in
};

/// A named test of a match.
struct Condition {
  std::string_view text{};  ///< follows "where"; empty: always
  bool (*holds)(const Match&) = nullptr;
};

/// The attributes of the result's op that has some; where they come out empty, the rule does not apply.
struct Attributes {
  std::string_view text{};  ///< follows "with"
  std::optional<Attr> (*make)(const Match&) = nullptr;
};

/// A node that matches `from` is replaced by `to`. Ops of `to` have the node's dims, the outermost its type;
/// a number or a constant takes the shape that is needed where it stands.
struct Rule {
  Pattern from, to;
  Condition where{};
  Attributes attributes{};
  Keeps keeps = Keeps::bits;
};

/// "x * 1 -> x", "slice(x) -> x where it is all of x"
std::string to_string(const Rule&);

/// All of them, made once; the first that matches is taken.
const std::vector<Rule>& rules();

}  // namespace fuse::ir::algebra
