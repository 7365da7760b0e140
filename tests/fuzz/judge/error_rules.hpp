// What the rules of the running error analysis share: one op on other operands, ends of an element's range,
// and one rule for each way in which a result depends on operands.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <span>
#include <vector>

#include "fuzz/judge/running_error.hpp"

namespace fuse::fuzz {

struct Rule {
  const ir::Graph& graph;
  const ir::Node& node;
  std::span<const Enclosure* const> operands;
  const DimValues& dims;

  const Enclosure& operand(std::size_t i) const { return *operands[i]; }
  DType dtype() const { return node.type.dtype; }
  bool operands_exact() const;
  /// The node's op (or another of the same attributes) on these operands, each op rounded to `result`.
  ReferenceTensor apply(const std::vector<const ReferenceTensor*>& values, DType result,
                        std::optional<ir::Op> op = std::nullopt) const;
  ReferenceTensor centre() const;
};

Enclosure enclose_elementwise(const Rule&);
Enclosure enclose_select(const Rule&);
Enclosure enclose_convert(const Rule&);
Enclosure enclose_reduction(const Rule&);
/// Sums of operands or of products of operands: reduce_sum, scans, contractions.
Enclosure enclose_sum(const Rule&);
Enclosure enclose_movement(const Rule&);
/// Known where no operand has a choice.
Enclosure enclose_unknown(const Rule&);

/// Least and greatest value of a dtype; of a floating one the infinities: undecided.
template <class T>
struct Range {
  T low, high;
};
template <class T>
Range<T> whole(DType dtype);
template <>
Range<double> whole<double>(DType);
template <>
Range<std::int64_t> whole<std::int64_t>(DType);

inline bool same(double a, double b) {
  return std::bit_cast<std::uint64_t>(a) == std::bit_cast<std::uint64_t>(b) || (a != a && b != b);
}
inline bool same(std::int64_t a, std::int64_t b) { return a == b; }
/// -0 stands before +0.
inline bool before(double a, double b) { return a < b || (a == b && std::signbit(a) && !std::signbit(b)); }
inline bool before(std::int64_t a, std::int64_t b) { return a < b; }
inline bool is_nan(double a) { return a != a; }
inline bool is_nan(std::int64_t) { return false; }
inline bool undecided(double low, double high) { return std::isinf(low) && std::isinf(high) && low < high; }
/// An integer may be anything its range holds, and never NaN.
inline bool undecided(std::int64_t, std::int64_t) { return false; }

/// The value of a dtype next to `value`, not above (not below) it.
double floor_to(DType, double value);
double ceil_to(DType, double value);
double greatest_finite(DType);

/// Fills the ends of a result element by element; they are left out where no element has a choice.
template <class T>
class Ends {
 public:
  explicit Ends(const ReferenceTensor& centre)
      : centre_(centre),
        low_(centre.dtype(), centre.shape()),
        high_(centre.dtype(), centre.shape()),
        whole_(fuzz::whole<T>(centre.dtype())) {}

  void exact(std::size_t i) { put(i, centre_.elements<T>()[i], centre_.elements<T>()[i]); }
  void any(std::size_t i) { put(i, whole_.low, whole_.high); }
  void put(std::size_t i, T low, T high) {
    low_.elements<T>()[i] = low;
    high_.elements<T>()[i] = high;
    choice_ |= !same(low, high);
  }
  Enclosure take(ReferenceTensor centre) && {
    if (!choice_) return {std::move(centre), std::nullopt, std::nullopt};
    return {std::move(centre), std::move(low_), std::move(high_)};
  }

 private:
  const ReferenceTensor& centre_;
  ReferenceTensor low_, high_;
  Range<T> whole_;
  bool choice_ = false;
};

/// The same elements held as another floating dtype, which need not hold them exactly.
ReferenceTensor as_dtype(const ReferenceTensor&, DType);

}  // namespace fuse::fuzz
