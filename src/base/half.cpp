// SPDX-License-Identifier: Apache-2.0
#include <bit>
#include <cmath>
#include <fuse/dtype.hpp>
#include <limits>

namespace fuse {
inline namespace v0 {
namespace {

// Rounds a double once to a binary format with `mantissa` stored bits and exponent bias `bias`.
std::uint16_t encode(double value, int mantissa, int bias) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(value);
  const std::uint16_t sign = static_cast<std::uint16_t>(bits >> 48 & 0x8000);
  const int max_exponent = 2 * bias + 1;
  const auto infinity = static_cast<std::uint16_t>(max_exponent << mantissa);
  if (std::isnan(value)) return static_cast<std::uint16_t>(sign | infinity | 1 << (mantissa - 1));
  if (std::isinf(value)) return static_cast<std::uint16_t>(sign | infinity);
  if (value == 0) return sign;
  int exponent = std::ilogb(value);
  if (exponent < 1 - bias) exponent = 1 - bias;  // subnormal results share the smallest exponent
  // nearbyint rounds to nearest even; scaling by a power of two is exact.
  const double scaled = std::nearbyint(std::ldexp(std::fabs(value), mantissa - exponent));
  const auto significand = static_cast<std::uint32_t>(scaled);
  // A significand below 2^mantissa is subnormal; a carry moves into the exponent by itself.
  const std::uint32_t biased = static_cast<std::uint32_t>(exponent + bias - 1);
  const std::uint32_t magnitude = (biased << mantissa) + significand;
  return static_cast<std::uint16_t>(sign | (magnitude >= infinity ? infinity : magnitude));
}

double decode(std::uint16_t bits, int mantissa, int bias) {
  const int exponent = bits >> mantissa & (2 * bias + 1);
  const int fraction = bits & ((1 << mantissa) - 1);
  double magnitude;
  if (exponent == 2 * bias + 1) {
    magnitude = fraction ? std::numeric_limits<double>::quiet_NaN() : std::numeric_limits<double>::infinity();
  } else if (exponent == 0) {
    magnitude = std::ldexp(fraction, 1 - bias - mantissa);
  } else {
    magnitude = std::ldexp(fraction + (1 << mantissa), exponent - bias - mantissa);
  }
  return bits & 0x8000 ? -magnitude : magnitude;
}

}  // namespace

half::half(double value) : bits(encode(value, 10, 15)) {}
half::operator double() const { return decode(bits, 10, 15); }
bfloat16::bfloat16(double value) : bits(encode(value, 7, 127)) {}
bfloat16::operator double() const { return decode(bits, 7, 127); }

}  // namespace v0
}  // namespace fuse
