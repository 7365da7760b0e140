// Answers: what evaluations in the graph's types have for one output, and how far they are off the exact
// values. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "eval/bounds/reference_tensor.hpp"

namespace fuse::fusec {

struct Answers {
  enum Kind : std::uint8_t { finite = 1, nan = 2, positive = 4, negative = 8 };
  static std::uint8_t kind_of(double value);

  /// Of 17 draws from one normal distribution about 0, the last is beyond 4 times the largest of the others
  /// about once in a million.
  static constexpr double factor = 4;
  /// The relative error often hangs on one element, the one nearest to 0, where all draws may be small.
  static constexpr double relative_factor = 16;
  /// An output has many elements, each judged by its own errors too. Evaluations that take decisions alike go
  /// as far as errors reach, or farther.
  static constexpr double own_factor = 8, decided_factor = 1.5;

  bool diverse = false;  ///< some evaluations decide either way what errors leave open
  // Of each element of a float output:
  std::vector<std::uint8_t> kinds{};  ///< bits for NaN, an infinity of either sign, and a finite value
  std::vector<double> errors{};       ///< the largest of all evaluations
  std::vector<double> steady{};       ///< the largest of those that decide as the exact one does
  std::vector<double> sums{};         ///< of those errors
  std::size_t steady_count = 0;
  // Of each element of an integer or bool output:
  std::vector<std::int64_t> least{}, greatest{};

  void take_floats(const runtime::ReferenceTensor& values, const runtime::ReferenceTensor& exact,
                   bool steady_one);
  void take_integers(const runtime::ReferenceTensor& values);
  double largest() const;
  /// Every float element is finite in all evaluations.
  bool all_finite() const;
  /// Whether an integer may be this: one that hangs on an open decision may be farther from the answers than
  /// they are from each other, as a position among many that are nearly the greatest, or a sum of many
  /// comparisons.
  bool may_be(std::size_t element, std::int64_t value) const;
  /// How far an element may be off by what the evaluations have there.
  double own(std::size_t element) const;
};

}  // namespace fuse::fusec
