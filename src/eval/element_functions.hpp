// What each element-wise op means, for one element: `eval::name(T..)` of a floating type T and
// `eval::name(std::int64_t..)` for every row of ops.def. The evaluator and constant folding expand from the
// table, so a row without an overload fails to compile. Integers wrap at 64 bits; the caller wraps an i32
// result to 32 (the low bits agree). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <concepts>
#include <cstdint>

namespace fuse::eval {

namespace detail {
constexpr std::uint64_t bits(std::int64_t a) { return static_cast<std::uint64_t>(a); }
constexpr std::int64_t wrap(std::uint64_t a) { return static_cast<std::int64_t>(a); }
}  // namespace detail

// Rows of class `real` have no integer form.
template <std::floating_point T>
T floor(T a) {
  return std::floor(a);
}
template <std::floating_point T>
T ceil(T a) {
  return std::ceil(a);
}
/// Halves to even.
template <std::floating_point T>
T round(T a) {
  return std::nearbyint(a);
}
template <std::floating_point T>
T sqrt(T a) {
  return std::sqrt(a);
}
template <std::floating_point T>
T rsqrt(T a) {
  return 1 / std::sqrt(a);
}
template <std::floating_point T>
T reciprocal(T a) {
  return 1 / a;
}
template <std::floating_point T>
T exp(T a) {
  return std::exp(a);
}
template <std::floating_point T>
T exp2(T a) {
  return std::exp2(a);
}
template <std::floating_point T>
T expm1(T a) {
  return std::expm1(a);
}
template <std::floating_point T>
T log(T a) {
  return std::log(a);
}
template <std::floating_point T>
T log2(T a) {
  return std::log2(a);
}
template <std::floating_point T>
T log1p(T a) {
  return std::log1p(a);
}
template <std::floating_point T>
T sin(T a) {
  return std::sin(a);
}
template <std::floating_point T>
T cos(T a) {
  return std::cos(a);
}
template <std::floating_point T>
T tanh(T a) {
  return std::tanh(a);
}
template <std::floating_point T>
T erf(T a) {
  return std::erf(a);
}
template <std::floating_point T>
T atan2(T a, T b) {
  return std::atan2(a, b);
}
template <std::floating_point T>
bool is_nan(T a) {
  return a != a;
}
template <std::floating_point T>
bool is_inf(T a) {
  return std::isinf(a);
}

template <std::floating_point T>
T neg(T a) {
  return -a;
}
template <std::floating_point T>
T abs(T a) {
  return std::fabs(a);
}
/// NaN for NaN, +0 for either zero.
template <std::floating_point T>
T sign(T a) {
  return a != a ? a : static_cast<T>((a > 0) - (a < 0));
}
template <std::floating_point T>
T add(T a, T b) {
  return a + b;
}
template <std::floating_point T>
T sub(T a, T b) {
  return a - b;
}
template <std::floating_point T>
T mul(T a, T b) {
  return a * b;
}
template <std::floating_point T>
T div(T a, T b) {
  return a / b;
}
/// The remainder of truncating division: the sign of a.
template <std::floating_point T>
T rem(T a, T b) {
  return std::fmod(a, b);
}
template <std::floating_point T>
T pow(T a, T b) {
  return std::pow(a, b);
}
/// A NaN on either side wins, and +0 is greater than -0.
template <std::floating_point T>
T max(T a, T b) {
  return a > b || a != a || (a == b && !std::signbit(a)) ? a : b;
}
template <std::floating_point T>
T min(T a, T b) {
  return a < b || a != a || (a == b && std::signbit(a)) ? a : b;
}

template <std::floating_point T>
T clamp(T a, T b, T c) {
  return min(max(a, b), c);
}

inline std::int64_t neg(std::int64_t a) { return detail::wrap(0 - detail::bits(a)); }
inline std::int64_t abs(std::int64_t a) { return a < 0 ? neg(a) : a; }
inline std::int64_t sign(std::int64_t a) { return (a > 0) - (a < 0); }
inline std::int64_t add(std::int64_t a, std::int64_t b) {
  return detail::wrap(detail::bits(a) + detail::bits(b));
}
inline std::int64_t sub(std::int64_t a, std::int64_t b) {
  return detail::wrap(detail::bits(a) - detail::bits(b));
}
inline std::int64_t mul(std::int64_t a, std::int64_t b) {
  return detail::wrap(detail::bits(a) * detail::bits(b));
}
/// The quotient toward zero; x / 0 is 0 and the lowest value / -1 is itself.
inline std::int64_t div(std::int64_t a, std::int64_t b) { return b == 0 ? 0 : b == -1 ? neg(a) : a / b; }
inline std::int64_t rem(std::int64_t a, std::int64_t b) { return b == 0 || b == -1 ? 0 : a % b; }
/// The power by squaring. A negative exponent gives the truncated fraction: 0, except for the bases 1 and -1
/// (base 0: 0).
inline std::int64_t pow(std::int64_t base, std::int64_t exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? ((exponent & 1) != 0 ? -1 : 1) : 0;
  std::uint64_t result = 1;
  std::uint64_t factor = detail::bits(base);
  for (std::uint64_t e = detail::bits(exponent); e != 0; e >>= 1) {
    if ((e & 1) != 0) result *= factor;
    factor *= factor;
  }
  return detail::wrap(result);
}
inline std::int64_t max(std::int64_t a, std::int64_t b) { return b > a ? b : a; }
inline std::int64_t min(std::int64_t a, std::int64_t b) { return b < a ? b : a; }
inline std::int64_t clamp(std::int64_t a, std::int64_t b, std::int64_t c) { return min(max(a, b), c); }
inline std::int64_t bit_not(std::int64_t a) { return ~a; }
inline std::int64_t bit_and(std::int64_t a, std::int64_t b) { return a & b; }
inline std::int64_t bit_or(std::int64_t a, std::int64_t b) { return a | b; }
inline std::int64_t bit_xor(std::int64_t a, std::int64_t b) { return a ^ b; }
/// 0 where b is negative or 64 and more; a narrower type loses the bits beyond its width when it wraps.
inline std::int64_t shift_left(std::int64_t a, std::int64_t b) {
  return b < 0 || b > 63 ? 0 : detail::wrap(detail::bits(a) << b);
}
/// Values of narrower types come sign-extended (u8: zero-extended), so the sign alone is left beyond their
/// width.
inline std::int64_t shift_right(std::int64_t a, std::int64_t b) { return a >> (b < 0 || b > 63 ? 63 : b); }

// A bool is stored as the integer 0 or 1.
inline bool logical_not(std::int64_t a) { return a == 0; }
inline bool logical_and(std::int64_t a, std::int64_t b) { return a != 0 && b != 0; }
inline bool logical_or(std::int64_t a, std::int64_t b) { return a != 0 || b != 0; }

template <std::floating_point T>
bool eq(T a, T b) {
  return a == b;
}
template <std::floating_point T>
bool ne(T a, T b) {
  return a != b;
}
template <std::floating_point T>
bool lt(T a, T b) {
  return a < b;
}
template <std::floating_point T>
bool le(T a, T b) {
  return a <= b;
}
template <std::floating_point T>
bool gt(T a, T b) {
  return a > b;
}
template <std::floating_point T>
bool ge(T a, T b) {
  return a >= b;
}
inline bool eq(std::int64_t a, std::int64_t b) { return a == b; }
inline bool ne(std::int64_t a, std::int64_t b) { return a != b; }
inline bool lt(std::int64_t a, std::int64_t b) { return a < b; }
inline bool le(std::int64_t a, std::int64_t b) { return a <= b; }
inline bool gt(std::int64_t a, std::int64_t b) { return a > b; }
inline bool ge(std::int64_t a, std::int64_t b) { return a >= b; }

}  // namespace fuse::eval
