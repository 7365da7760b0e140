// Prints a C++ program that computes each special function (primitives/special.cpp) of every f32, and its
// errors. The text of the functions is the one that kernels get; in it, `fused` is one rounding, as on a GPU,
// and the two approximate instructions err by as much as NVIDIA's documents allow.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include "codegen_cuda/primitives/primitives.hpp"

namespace {

constexpr std::string_view before = R"(#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <vector>

using std::erf;
using std::tanh;

float float_of(std::uint32_t bits) { float v; std::memcpy(&v, &bits, 4); return v; }
std::uint32_t bits_of(float v) { std::uint32_t bits; std::memcpy(&bits, &v, 4); return bits; }
/// The spacing of floats at the value.
double ulp(double value) {
  int exponent = 0;
  std::frexp(value, &exponent);
  return std::ldexp(1.0, (exponent < -125 ? -125 : exponent) - 24);
}

// What the approximate instructions err by: ex2.approx by two units in the last place, or by 2^-22 of the result;
// rcp.approx by one unit.
struct Errors { double exp2_units, exp2_share, reciprocal_units; };
const std::vector<Errors> of_exp2 = {{0, 0, 0}, {-2, 0, 0}, {2, 0, 0}, {0, -0x1p-22, 0}, {0, 0x1p-22, 0}};
std::vector<Errors> with_reciprocal() {
  std::vector<Errors> all;
  for (const Errors& e : of_exp2) {
    for (int units = -1; units <= 1; ++units) all.push_back({e.exp2_units, e.exp2_share, units * 1.0});
  }
  return all;
}
Errors errors;
inline float exp2_approximate(float v) {
  static float last = NAN;
  static double exact = 0, unit = 0;
  if (v != last) last = v, exact = std::exp2(static_cast<double>(v)), unit = ulp(exact);
  if (!std::isfinite(exact) || exact == 0) return static_cast<float>(exact);
  const float result = static_cast<float>(exact + errors.exp2_units * unit + errors.exp2_share * exact);
  return result < 0x1p-126f ? 0.0f : result;
}
inline float reciprocal_approximate(float v) {
  const double exact = 1.0 / v;
  if (!std::isfinite(exact) || exact == 0) return static_cast<float>(exact);
  return static_cast<float>(exact + errors.reciprocal_units * ulp(exact));
}
inline float fused(float a, float b, float c) { return std::fma(a, b, c); }
)";

constexpr std::string_view after = R"(
struct Worst {
  double error = 0;
  float at = 0;
  void see(double by, float where) { if (!(by <= error)) error = by, at = where; }
};

/// Of all floats that are no NaN: positive ones are compared with the function in double, negative ones with them.
template <class F, class G>
void enumerate(const char* name, std::uint32_t step, const std::vector<Errors>& allowed_errors, F function, G reference) {
  Worst exact, allowed;
  std::uint64_t asymmetric = 0, beyond = 0, count = 0;
  for (std::uint64_t bits = 0; bits <= 0x7f800000u; bits += step, ++count) {
    const float x = float_of(static_cast<std::uint32_t>(bits));
    const double y = reference(static_cast<double>(x)), unit = ulp(y);
    for (const Errors& e : allowed_errors) {
      errors = e;
      const float result = function(x);
      allowed.see(std::fabs(result - y) / unit, x);
      beyond += std::fabs(result) > 1;
    }
    errors = {0, 0, 0};
    const float result = function(x);
    exact.see(std::fabs(result - y) / unit, x);
    asymmetric += bits_of(function(-x)) != (bits_of(result) ^ 0x80000000u);
  }
  std::printf("%s: %llu floats from 0 to infinity, and their negatives\n", name, static_cast<unsigned long long>(count));
  std::printf("  exact instructions: at most %.4f ulp, at %a\n", exact.error, exact.at);
  std::printf("  instructions that err as documented: at most %.4f ulp, at %a\n", allowed.error, allowed.at);
  std::printf("  beyond 1: %llu, f(-x) is not -f(x): %llu, f(NaN) is NaN: %s\n", static_cast<unsigned long long>(beyond),
              static_cast<unsigned long long>(asymmetric), std::isnan(function(NAN)) ? "yes" : "no");
  std::fflush(stdout);
}

int main(int count, char** words) {
  const std::uint32_t step = count > 1 ? std::strtoul(words[1], nullptr, 10) : 1;
  std::printf("every float, step %u; the op table allows 3 ulp and half a one\n", step);
  enumerate("erf", step, of_exp2, [](float x) { return error_function(x); }, [](double x) { return std::erf(x); });
  enumerate("tanh", step, with_reciprocal(), [](float x) { return hyperbolic_tangent(x); }, [](double x) { return std::tanh(x); });
}
)";

}  // namespace

namespace fuse::test {

void print_special_functions() {
  std::string text(before);
  for (const char* name : {"minimum", "error_function", "hyperbolic_tangent"}) {
    text += fuse::codegen::find_primitive(name)->host;
  }
  fmt::print("{}{}", text, after);
}

}  // namespace fuse::test
