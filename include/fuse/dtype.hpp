// Element types of tensors, and the host types of the two 16-bit floats.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/export.hpp>
#include <optional>
#include <string_view>

namespace fuse {
inline namespace v0 {

/// The element type of a tensor: f64, f32, f16, bf16, i64, i32, i8, u8 or boolean.
enum class DType : std::uint8_t {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) name,
#include <fuse/dtypes.def>
};

/// What kind of numbers an element type has.
enum class DTypeKind : std::uint8_t { floating, integer, boolean };

// Spelled as in `g.input("x", fuse::bf16, {B, 1024})`.
#define FUSE_DTYPE(name, text, bytes, kind, cuda) inline constexpr DType name = DType::name;
#include <fuse/dtypes.def>

/// Bytes one element takes in memory. A bool is one byte that holds 0 or 1.
constexpr std::size_t size_of(DType type) {
  switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return bytes;
#include <fuse/dtypes.def>
  }
  return 0;
}

/// What kind of numbers the type has.
constexpr DTypeKind kind_of(DType type) {
  switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return DTypeKind::kind;
#include <fuse/dtypes.def>
  }
  return DTypeKind::boolean;
}

/// True for f64, f32, f16 and bf16.
constexpr bool is_floating(DType type) { return kind_of(type) == DTypeKind::floating; }
/// True for i64, i32, i8 and u8.
constexpr bool is_integer(DType type) { return kind_of(type) == DTypeKind::integer; }
/// f16 or bf16: stored only; arithmetic on them is convert, f32 op, convert.
constexpr bool is_half(DType type) { return type == DType::f16 || type == DType::bf16; }

/// The least and the greatest value of an integer type; 0 and 1 for a bool.
struct IntegerRange {
  ///@{
  /// The least value, `low`, and the greatest one, `high`.
  std::int64_t low = 0, high = 1;
  ///@}
};
/// The range of a type; that of a bool for a floating type.
constexpr IntegerRange integer_range(DType type) {
  if (!is_integer(type)) return {};
  if (type == DType::u8) return {0, 255};
  const std::int64_t high = INT64_MAX >> (64 - 8 * size_of(type));
  return {-high - 1, high};
}

/// The spelling in `.fuse` text: "f32", "bool".
constexpr std::string_view to_string(DType type) {
  switch (type) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  case DType::name:                               \
    return text;
#include <fuse/dtypes.def>
  }
  return "?";
}

/// The inverse of to_string; empty for an unknown spelling.
constexpr std::optional<DType> parse_dtype(std::string_view text_) {
#define FUSE_DTYPE(name, text, bytes, kind, cuda) \
  if (text_ == text) return DType::name;
#include <fuse/dtypes.def>
  return std::nullopt;
}

/// IEEE binary16 as a host type. Conversion from double rounds once, to nearest even.
struct FUSE_COMPILER_API half {
  std::uint16_t bits = 0;  ///< the sign, then 5 bits of the exponent, then 10 of the fraction
  /// 0.
  half() = default;
  /// The number nearest to the value, ties to even; infinity for one that is too large.
  explicit half(double value);
  /// The number, exactly.
  explicit operator double() const;
  /// The number, exactly.
  explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
};

/// bfloat16 as a host type. Conversion from double rounds once, to nearest even; NaN stays NaN.
struct FUSE_COMPILER_API bfloat16 {
  std::uint16_t bits = 0;  ///< the sign, then 8 bits of the exponent, then 7 of the fraction
  /// 0.
  bfloat16() = default;
  /// The number nearest to the value, ties to even; infinity for one that is too large.
  explicit bfloat16(double value);
  /// The number, exactly.
  explicit operator double() const;
  /// The number, exactly.
  explicit operator float() const { return static_cast<float>(static_cast<double>(*this)); }
};

}  // namespace v0
}  // namespace fuse
