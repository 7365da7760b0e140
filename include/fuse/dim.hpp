// Dim: the extent of a tensor's dimension, an expression over integers and named symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <fuse/export.hpp>
#include <fuse/function_ref.hpp>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {

namespace detail {
struct DimPoly;
struct Access;
}  // namespace detail

inline namespace v0 {

/// What is known of a symbol before run time: min <= value <= max; `hint` is a likely value (0: none).
struct DimRange {
  std::int64_t min = 0;                                         ///< the least value; at least 0
  std::int64_t max = std::numeric_limits<std::int32_t>::max();  ///< the greatest value
  std::int64_t hint = 0;                                        ///< a likely value in the range; 0: none
  /// True when all three numbers are equal.
  bool operator==(const DimRange&) const = default;
};

/// An integer expression kept in one canonical form: a sum of products of symbols, floor divisions and
/// remainders. Two Dims are equal when their forms are, so `B * T == T * B`; `==` never asks a run-time
/// value. Immutable and cheap to copy; a constant allocates nothing. Arithmetic that overflows 63 bits and
/// division by zero throw invalid_extent. `/` floors and `%` has the sign of the divisor.
class FUSE_COMPILER_API Dim {
 public:
  /// The constant 0.
  Dim() = default;
  /// A constant.
  template <std::integral T>
  Dim(T value) : constant_(static_cast<std::int64_t>(value)) {}  // NOLINT: `{B, 1024}` reads as dims

  /// A symbol. Use Graph::dim, which keeps names unique in a graph.
  static Dim symbol(std::string name, DimRange range);
  /// A variable v with 0 <= v < extent, as loops and thread indices are; used by index arithmetic.
  static Dim index(std::string name, Dim extent);

  /// True for a number, an expression without symbols.
  bool is_constant() const { return !poly_; }
  /// The value of a constant; an internal error otherwise.
  std::int64_t constant() const;
  /// True for the constant `value`.
  bool is(std::int64_t value) const { return !poly_ && constant_ == value; }
  /// The name when the expression is a single symbol or index variable, else empty.
  std::string_view name() const;

  /// Bounds that hold for every value of the symbols in their ranges; they saturate at the ends of int64.
  ///@{
  std::int64_t min() const;
  std::int64_t max() const;
  ///@}
  /// The value at the symbols' hints (their geometric middle where they have none).
  std::int64_t hint() const;

  /// Every symbol and index variable in the expression, sorted by name.
  std::vector<Dim> symbols() const;
  /// The value when each symbol has the value `of(name)`.
  std::int64_t evaluate(detail::FunctionRef<std::int64_t(std::string_view)> of) const;
  /// The expression with symbol `name` replaced.
  Dim substitute(std::string_view name, const Dim& by) const;
  /// The expression with every symbol replaced at once by `of(name)`; a null result keeps it.
  Dim substitute(detail::FunctionRef<const Dim*(std::string_view)> of) const;

  /// "4 * B * T + 3", "(B + 1) / 4": both C and `.fuse` text.
  std::string to_string() const;

  /// Arithmetic, in the canonical form. `/` rounds down, and the result of `%` has the sign of the divisor.
  /// Throws invalid_extent for an overflow of 63 bits and a division by zero.
  ///@{
  friend FUSE_COMPILER_API Dim operator+(const Dim&, const Dim&);
  friend FUSE_COMPILER_API Dim operator-(const Dim&, const Dim&);
  friend FUSE_COMPILER_API Dim operator*(const Dim&, const Dim&);
  friend FUSE_COMPILER_API Dim operator/(const Dim&, const Dim&);
  friend FUSE_COMPILER_API Dim operator%(const Dim&, const Dim&);
  ///@}
  /// True when the canonical forms are equal; the values of symbols are not asked.
  friend FUSE_COMPILER_API bool operator==(const Dim&, const Dim&);
  /// A total order on forms (not on values), for tables that must not depend on addresses.
  friend FUSE_COMPILER_API int compare(const Dim&, const Dim&);

 private:
  friend struct detail::DimPoly;
  friend struct detail::Access;
  std::int64_t constant_ = 0;
  std::shared_ptr<const detail::DimPoly> poly_;
};

/// The quotient rounded up, for a positive b: (a + b - 1) / b.
FUSE_COMPILER_API Dim ceil_div(const Dim& a, const Dim& b);
/// The product of extents; 1 for none.
FUSE_COMPILER_API Dim product(const std::vector<Dim>& dims);
/// True when a < b for every value of the symbols; false means "not proven".
FUSE_COMPILER_API bool proven_less(const Dim& a, const Dim& b);
/// True when a <= b for every value of the symbols; false means "not proven".
FUSE_COMPILER_API bool proven_le(const Dim& a, const Dim& b);
/// True when a is a multiple of b for every value of the symbols. False means "not proven".
FUSE_COMPILER_API bool proven_divisible(const Dim& a, const Dim& b);

}  // namespace v0
}  // namespace fuse
