// SPDX-License-Identifier: Apache-2.0
#include "base/number.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

namespace fuse {
namespace {

template <class Float>
ParsedNumber read(std::string_view digits, bool hex) {
  Float value = 0;
  const char* const last = digits.data() + digits.size();
  const auto [end, error] =
      std::from_chars(digits.data(), last, value, hex ? std::chars_format::hex : std::chars_format::general);
  if (error == std::errc::invalid_argument || end != last) return {.error = std::errc::invalid_argument};
  return {static_cast<double>(value), error};
}

/// A magnitude above zero, exactly: 0.DIGITS times a power of the base, without zeros at either end.
struct Digits {
  std::int64_t exponent = 0;
  std::string digits{};
  auto operator<=>(const Digits&) const = default;
};

std::string bits_of(char digit) {
  const int value = digit <= '9' ? digit - '0' : (digit | 0x20) - 'a' + 10;
  std::string bits;
  for (int bit = 3; bit >= 0; --bit) bits += (value >> bit & 1) != 0 ? '1' : '0';
  return bits;
}

/// The digits of a hexadecimal number are bits, so that equal values have equal digits.
Digits digits_of(std::string_view text, bool hex) {
  Digits result;
  const std::size_t mark = std::min(text.find_first_of(hex ? "pP" : "eE"), text.size());
  bool fraction = false;
  for (const char c : text.substr(0, mark)) {
    if (c == '.') {
      fraction = true;
      continue;
    }
    result.digits += hex ? bits_of(c) : std::string(1, c);
    if (!fraction) result.exponent += hex ? 4 : 1;
  }
  if (mark < text.size()) {
    text.remove_prefix(mark + (text[mark + 1] == '+' ? 2 : 1));
    std::int64_t power = 0;
    std::from_chars(text.data(), text.data() + text.size(), power);
    result.exponent += power;
  }
  const std::size_t zeros = result.digits.find_first_not_of('0');
  result.exponent -= static_cast<std::int64_t>(zeros);
  result.digits = result.digits.substr(zeros, result.digits.find_last_not_of('0') + 1 - zeros);
  return result;
}

/// The number as f64, of which a second rounding makes what one rounding makes: where it lies between two
/// values of f64, the one whose last bit is set.
double rounded_to_odd(std::string_view text, bool hex, double nearest) {
  constexpr int most_digits = 766;  // the most digits after the first one, for any f64
  std::array<char, most_digits + 16> buffer{};
  const auto [end, error] =
      hex ? std::to_chars(buffer.begin(), buffer.end(), nearest, std::chars_format::hex)
          : std::to_chars(buffer.begin(), buffer.end(), nearest, std::chars_format::scientific, most_digits);
  const auto order = digits_of(text, hex) <=> digits_of({buffer.begin(), end}, hex);
  if (order == 0 || (std::bit_cast<std::uint64_t>(nearest) & 1) != 0) return nearest;
  return std::nextafter(nearest, order > 0 ? std::numeric_limits<double>::infinity() : 0);
}

}  // namespace

ParsedNumber parse_magnitude(std::string_view text, DType dtype) {
  const bool hex = text.starts_with("0x");
  if (hex) text.remove_prefix(2);
  if (dtype == f32) return read<float>(text, hex);
  ParsedNumber number = read<double>(text, hex);
  if (!is_half(dtype) || number.error != std::errc() || number.value == 0) return number;
  const double odd = rounded_to_odd(text, hex, number.value);
  number.value = dtype == f16 ? static_cast<double>(half(odd)) : static_cast<double>(bfloat16(odd));
  if (number.value == 0 || std::isinf(number.value)) number.error = std::errc::result_out_of_range;
  return number;
}

std::string magnitude_text(double value) {
  // C++ libraries differ in how they write a number below the smallest normal one. So only its digits are
  // written by them, as of a number from 1 to 2.
  const int exponent = value == 0 ? 0 : std::ilogb(value);
  std::array<char, 40> digits{};
  const char* const end =
      std::to_chars(digits.begin(), digits.end(), std::scalbn(value, -exponent), std::chars_format::hex).ptr;
  const std::string_view text(digits.data(), static_cast<std::size_t>(end - digits.data()));
  return fmt::format("0x{}p{:+d}", text.substr(0, text.find('p')), exponent);
}

}  // namespace fuse
