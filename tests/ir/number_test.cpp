// SPDX-License-Identifier: Apache-2.0
#include "base/number.hpp"

#include <array>
#include <charconv>
#include <cstdint>
#include <random>
#include <string>

#include "support/catch.hpp"

namespace fuse::test {
namespace {

constexpr std::uint64_t number_seed = 20261125;

std::string exact_decimal(double value) {
  std::array<char, 1200> buffer{};
  const auto [end, error] = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::fixed, 200);
  return {buffer.begin(), end};
}

std::string exact_hex(double value) {
  std::array<char, 64> buffer{};
  const auto [end, error] = std::to_chars(buffer.begin(), buffer.end(), value, std::chars_format::hex, 13);
  return "0x" + std::string(buffer.begin(), end);
}

/// The text of a number a little above another, too little for f64 to hold.
std::string above(const std::string& text) {
  const std::size_t mark = std::min(text.find(text.starts_with("0x") ? 'p' : 'e'), text.size());
  return text.substr(0, mark) + std::string(30, '0') + '1' + text.substr(mark);
}

template <class Half>
void check_ties(DType dtype) {
  std::mt19937_64 random(number_seed);
  for (int i = 0; i < 2000; ++i) {
    Half low;
    low.bits = static_cast<std::uint16_t>(random() % 0x7b00);
    Half high = low;
    ++high.bits;
    const double a = static_cast<double>(low), b = static_cast<double>(high), tie = (a + b) / 2;
    if (tie < 1e-30 || tie > 1e30) continue;
    INFO("seed " << number_seed << " step " << i << ": between " << a << " and " << b);
    const double even = low.bits % 2 == 0 ? a : b;
    for (const std::string& text : {exact_decimal(tie), exact_hex(tie)}) {
      REQUIRE(parse_magnitude(text, dtype).value == even);
      REQUIRE(parse_magnitude(above(text), dtype).value == b);
    }
    // A tie of f64 above the tie of the half type: the nearest of f64 is the tie itself.
    const std::string below = exact_hex(std::nextafter(tie, 0.0));
    REQUIRE(parse_magnitude(below, dtype).value == a);
    const std::size_t mark = below.find('p');
    REQUIRE(parse_magnitude(below.substr(0, mark) + "ffffff" + below.substr(mark), dtype).value == a);
  }
}

}  // namespace

TEST_CASE("numbers near a tie of a half type are rounded once", "[ir][parse]") {
  check_ties<half>(f16);
  check_ties<bfloat16>(bf16);
}

TEST_CASE("numbers have one text on every system", "[ir][print]") {
  CHECK(magnitude_text(0) == "0x0p+0");
  CHECK(magnitude_text(0.15625) == "0x1.4p-3");
  CHECK(magnitude_text(1e300) == "0x1.7e43c8800759cp+996");
  CHECK(magnitude_text(0x1p-1022) == "0x1p-1022");
  CHECK(magnitude_text(0x1.f8p-1060) == "0x1.f8p-1060");
  CHECK(magnitude_text(0x1p-1074) == "0x1p-1074");
  CHECK(magnitude_text(0x1.fffffffffffffp+1023) == "0x1.fffffffffffffp+1023");
  for (const double value : {0x1p-1074, 0x1.f8p-1060, 0x1.23456789abcdep-3, 1e300})
    CHECK(parse_magnitude(magnitude_text(value), f64).value == value);
}

TEST_CASE("numbers of other spellings are the same numbers", "[ir][parse]") {
  for (const char* text : {"0x10.02p-4", "0x0.1002p4", "0x1.002p+0", "1.00048828125", "0.100048828125e1",
                           "100048828.12500e-8"}) {
    INFO(text);
    REQUIRE(parse_magnitude(text, f16).value == 1);
    REQUIRE(parse_magnitude(above(text), f16).value == 0x1.004p0);
  }
}

}  // namespace fuse::test
