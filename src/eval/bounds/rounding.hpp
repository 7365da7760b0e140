// Roundings of values that the evaluator holds as double or int64_t: what storing them in a dtype would do.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <fuse/dtype.hpp>
#include <limits>

namespace fuse::runtime {

/// What a value of the graph holds. exact: floats stay double from the inputs to the outputs. wide: the same
/// in a wider type where the graph has an f64, so that no dtype is as wide as what it is judged by.
/// same_type: each op's result is rounded to its dtype, as code that runs op by op would leave it.
enum class Precision : std::uint8_t { exact, wide, same_type };

namespace reference {

/// The value nearest (ties to even) in a format of `mantissa` stored bits and least normal exponent
/// `least`; beyond the greatest finite one, infinity. As fuse::half and fuse::bfloat16, without leaving
/// double.
template <int mantissa, int least>
double round_narrow(double value) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const double magnitude = std::fabs(value);
  if (!(magnitude < infinity)) return value;
  constexpr auto power = [](int exponent) {
    return std::bit_cast<double>(static_cast<std::uint64_t>(exponent + 1023) << 52);
  };
  double rounded;
  if (magnitude < power(least)) {
    // Subnormal: adding 2^(52 + last bit) leaves no bits below the last one, rounded to nearest even.
    constexpr double shift = power(52 + least - mantissa);
    rounded = (magnitude + shift) - shift;
  } else {
    constexpr int dropped = 52 - mantissa;
    std::uint64_t bits = std::bit_cast<std::uint64_t>(magnitude);
    bits += (std::uint64_t{1} << (dropped - 1)) - 1 + (bits >> dropped & 1);
    rounded = std::bit_cast<double>(bits >> dropped << dropped);
    if (rounded >= power(2 - least)) rounded = infinity;  // the greatest exponent is 1 - least
  }
  return std::copysign(rounded, value);
}

inline double round_f32(double value) { return static_cast<float>(value); }
inline double round_f16(double value) { return round_narrow<10, -14>(value); }
inline double round_bf16(double value) { return round_narrow<7, -126>(value); }

/// Rounds to a floating dtype.
void round_to(DType dtype, double* values, std::size_t count);
/// Wraps to an integer dtype.
void wrap_to(DType dtype, std::int64_t* values, std::size_t count);

/// The double that rounds to any narrower format as `value` itself does: what a double cannot hold becomes
/// one sticky bit, so that the second rounding sees that it was there.
inline double sticky_double(std::int64_t value) {
  std::uint64_t magnitude =
      value < 0 ? 0 - static_cast<std::uint64_t>(value) : static_cast<std::uint64_t>(value);
  if (magnitude >> 53 != 0) magnitude = (magnitude & ~0xfffULL) | ((magnitude & 0xfff) != 0 ? 0x800U : 0U);
  const double result = static_cast<double>(magnitude);
  return value < 0 ? -result : result;
}

/// Truncates and saturates; NaN gives 0.
template <class Integer, class Real>
std::int64_t truncate_to(Real value) {
  using Limits = std::numeric_limits<Integer>;
  constexpr Real end = static_cast<Real>(Limits::max() / 2 + 1) * 2;  // one above the greatest, exact
  if (value != value) return 0;
  if (value >= end) return Limits::max();
  if (value <= static_cast<Real>(Limits::min())) return Limits::min();
  return static_cast<Integer>(value);
}

}  // namespace reference
}  // namespace fuse::runtime
