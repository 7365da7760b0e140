// Divisions by one value of many elements: the bits of IEEE division in three steps and a test for each.
//
// With r the float nearest to 1 / b, q = a r is at most 1.5 units in the last place off a / b, and
// q + r (a - q b) in two fused operations is the float nearest to it (Markstein, 1990), as long as the
// remainder a - q b and the quotient do not underflow: for b in [2^-24, 2^24] that holds where a is 0 or at
// least 2^-101. r itself is an approximation with one correction, which gives the nearest float for all b but
// those whose significand is all ones; for these r is NaN. The remainder is taken negated, which gives a
// quotient of 0 the sign of a. Elements are tested for smaller numerators, and for quotients that are no
// numbers: those of infinities, of NaNs, and of all where r is NaN, as it is for divisors outside of the
// interval. Where one element fails, the vector is divided anew. tests/proofs/division_proof.cpp has the
// proof for all floats. SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> division_primitives() {
  return {
      {.name = "divisor_reciprocal",
       .cuda = R"(__device__ inline float divisor_reciprocal(float b) {
  const float r = reciprocal_approximate(b);
  const bool usual = b >= 0x1p-24f && b <= 0x1p24f && (__float_as_uint(b) & 0x7fffff) != 0x7fffff;
  return usual ? fmaf(fmaf(-b, r, 1.0f), r, r) : __int_as_float(0x7fc00000);
}
)",
       .host = R"(inline float divisor_reciprocal(float b) { return 1.0f / b; }
)",
       .needs = {"reciprocal_approximate"}},
      {.name = "divide_vector",
       .cuda = R"(__device__ __noinline__ float divide_slow(float a, float b) { return a / b; }
template <int n>
__device__ inline void divide_vector(float (&quotient)[n], const float (&a)[n], float b, float r) {
  const unsigned least = 0x1a000000;  // 2^-101, shifted left by the sign
  unsigned smallest = 0;              // of wrapped distances from it: beyond zero's where a is smaller
  float finite = 0.0f;
#pragma unroll
  for (int i = 0; i < n; ++i) {
    const float q = a[i] * r;
    quotient[i] = fmaf(fmaf(b, q, -a[i]), -r, q);
    smallest = max(smallest, 2 * __float_as_uint(a[i]) - least);
    finite = fmaf(quotient[i], 0.0f, finite);
  }
  if (smallest > 0u - least || finite != finite) {
#pragma unroll
    for (int i = 0; i < n; ++i) quotient[i] = divide_slow(a[i], b);
  }
}
)",
       .host = R"(template <int n>
static void divide_vector(float (&quotient)[n], const float (&a)[n], float b, float) {
  for (int i = 0; i < n; ++i) quotient[i] = a[i] / b;
}
)",
       .checked_host = R"(template <int n>
static void divide_vector(local_array<float, n>& quotient, const local_array<float, n>& a, float b, float,
                          int line = __builtin_LINE()) {
  for (int i = 0; i < n; ++i) store(quotient, i, load(a, i, line) / b, line);
}
)",
       .member = true},
  };
}

}  // namespace fuse::codegen
