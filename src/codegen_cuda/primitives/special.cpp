// Special functions in fewer instructions than CUDA's own, within the op table's bounds. The polynomials are
// minimax fits. tests/proofs/ shows the errors of all floats. SPDX-License-Identifier: Apache-2.0
#include <string>

#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {
namespace {

// Each function stands in both dialects, so that only the two approximate instructions differ between
// devices.

// Both forms are computed, without a branch. The polynomial is right below 0.75 and too large above it; what
// the power of two gives is right above 0.75 and too large below it.
constexpr std::string_view error_function = R"(inline float error_function(float x) {
  const float a = fabsf(x), u = a * a;
  float s = 0.0041588107f;
  s = fused(s, u, -0.026360232f);
  s = fused(s, u, 0.11273735f);
  s = fused(s, u, -0.3761193f);
  s = fused(s, u, 1.1283791f) * a;
  float q = 0.002034499f;  // -log2(1 - erf(a))
  q = fused(q, a, -0.024173677f);
  q = fused(q, a, 0.13633232f);
  q = fused(q, a, 0.9320024f);
  q = fused(q, a, 1.6207451f);
  q = fused(q, a, 0.001476596f);
  return copysignf(minimum(s, 1.0f - exp2_approximate(-q)), x);
}
inline double error_function(double x) { return erf(x); }
)";

// 1 - 2 / (1 + exp(2 a)) cancels where a is small.
constexpr std::string_view hyperbolic_tangent = R"(inline float hyperbolic_tangent(float x) {
  const float a = fabsf(x), u = x * x;
  float s = 0.014875888f;
  s = fused(s, u, -0.051734254f);
  s = fused(s, u, 0.1330396f);
  s = fused(s, u, -0.33332124f);
  s = fused(s, u, 1.0f) * x;
  const float e = exp2_approximate(2.8853901f * a);
  const float l = copysignf(fused(-2.0f, reciprocal_approximate(1.0f + e), 1.0f), x);
  return a < 0.65f ? s : l;
}
inline double hyperbolic_tangent(double x) { return tanh(x); }
)";

/// The text with `__device__` before each of its functions.
std::string on_device(std::string_view text) {
  std::string result;
  for (std::size_t at = 0; at < text.size();) {
    if (text.substr(at).starts_with("inline ")) result += "__device__ ";
    const std::size_t end = text.find('\n', at) + 1;
    result += text.substr(at, end - at);
    at = end;
  }
  return result;
}

}  // namespace

std::vector<Primitive> special_primitives() {
  static const std::string device_error_function = on_device(error_function);
  static const std::string device_hyperbolic_tangent = on_device(hyperbolic_tangent);
  return {
      // a * b + c, rounded once. The C++ body rounds the sum with the exact product to double first, since
      // compilers make vectors of that. It differs from fmaf in one case of about 2^29.
      {.name = "fused",
       .cuda = R"(__device__ inline float fused(float a, float b, float c) { return fmaf(a, b, c); }
)",
       .host = R"(inline float fused(float a, float b, float c) {
  return static_cast<float>(static_cast<double>(a) * b + c);
}
)"},
      // Two units in the last place; a subnormal result is 0.
      {.name = "exp2_approximate",
       .cuda = R"(__device__ inline float exp2_approximate(float v) {
  float result;
  asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
}
)",
       .host = R"(inline float exp2_approximate(float v) { return exp2f(v); }
)"},
      // One unit in the last place, for what is neither subnormal nor has a subnormal reciprocal.
      {.name = "reciprocal_approximate",
       .cuda = R"(__device__ inline float reciprocal_approximate(float v) {
  float result;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(result) : "f"(v));
  return result;
}
)",
       .host = R"(inline float reciprocal_approximate(float v) { return 1.0f / v; }
)"},
      {.name = "error_function",
       .cuda = device_error_function,
       .host = error_function,
       .needs = {"minimum", "fused", "exp2_approximate"}},
      {.name = "hyperbolic_tangent",
       .cuda = device_hyperbolic_tangent,
       .host = hyperbolic_tangent,
       .needs = {"fused", "exp2_approximate", "reciprocal_approximate"}},
  };
}

}  // namespace fuse::codegen
