// SPDX-License-Identifier: Apache-2.0
#include "proofs/division_proof.hpp"

#include <fmt/format.h>

#include "proofs/cuda_on_host.hpp"

namespace fuse::test {
namespace {

constexpr const char* text = R"(
static bool same(float a, float b) {
  return __float_as_uint(a) == __float_as_uint(b) || (a != a && b != b);
}
struct Found { u64 tested, wrong; float a, b, got, wanted; };
template <int n> static void check(const float (&a)[n], float b, Found& found) {
  float q[n];
  divide_vector(q, a, b, divisor_reciprocal(b));
  for (int i = 0; i < n; ++i) {
    volatile float exact = a[i] / b;
    ++found.tested;
    if (same(q[i], exact)) continue;
    if (found.wrong++ == 0) found.a = a[i], found.b = b, found.got = q[i], found.wanted = exact;
  }
}

PROOF void reciprocals(Found& found) {
  for (unsigned significand = 0; significand < 1u << 23; ++significand) {
    const float b = __uint_as_float(0x3f800000 | significand);
    volatile float nearest = 1.0f / b;
    for (int units = -1; units <= 1; ++units) {
      // Floats that are off by one unit of their own at most.
      const float near = __uint_as_float(__float_as_uint(nearest) + units);
      const double unit = (double)__uint_as_float(__float_as_uint(near) + 1) - near;
      const double off = near - 1.0 / b;
      if (off > unit || off < -unit) continue;
      approximation = near;
      const float r = divisor_reciprocal(b);
      ++found.tested;
      if (same(r, nearest) || (r != r && significand == 0x7fffff)) continue;
      if (found.wrong++ == 0) found.a = 1.0f, found.b = b, found.got = r, found.wanted = nearest;
    }
  }
  approximation = 0.0f;
}

PROOF void near_middles(Found& found) {
  for (u64 b = 1 << 23; b < 1 << 24; ++b) {
    const int zeros = __builtin_ctzll(b);
    const u64 odd = b >> zeros;
    u64 inverse = odd;
    for (int i = 0; i < 5; ++i) inverse *= 2 - odd * inverse;
    for (int s = 23; s <= 24; ++s) {
      for (long long k = -7; k <= 7; ++k) {
        if (k == 0 || k % (1ll << zeros) != 0) continue;
        const u64 modulus = 1ull << (s + 1 - zeros);
        for (u64 w = (0 - (u64)(k / (1ll << zeros))) * inverse & (modulus - 1); w < 1u << 25; w += modulus) {
          if (w < 1u << 24 || !(w & 1)) continue;
          const u64 scaled = w * b + k;
          if (scaled & ((2ull << s) - 1)) continue;
          const u64 a = scaled >> (s + 1);
          if (a < 1 << 23 || a >= 1 << 24) continue;
          const float numerator[1] = {(float)a};
          check(numerator, (float)b * 0x1p-23f, found);
        }
      }
    }
  }
}

static u64 state;
static u64 next() {  // splitmix64
  u64 z = state += 0x9e3779b97f4a7c15ull;
  z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9ull;
  z = (z ^ z >> 27) * 0x94d049bb133111ebull;
  return z ^ z >> 31;
}
static float of_exponent(unsigned lowest, unsigned count) {
  const u64 r = next();
  return __uint_as_float((unsigned)(r >> 63) << 31 | (lowest + (unsigned)(r >> 32) % count) << 23 |
                         ((unsigned)r & 0x7fffff));
}
static float numerator() {
  const float special[] = {0.0f, -0.0f, __builtin_inff(), -__builtin_inff(), __builtin_nanf(""), 0x1p-101f,
                           0x1.fffffep-102f, 0x1p-149f, 0x1.fffffep127f, 1.0f};
  const u64 r = next();
  switch (r % 8) {
    case 0: return special[r / 8 % 10];
    case 1: return of_exponent(24, 5);    // around 2^-101
    case 2: return of_exponent(0, 3);     // subnormal
    case 3: return of_exponent(250, 5);
    case 4: return __uint_as_float((unsigned)(r >> 16));
    default: return of_exponent(60, 80);
  }
}
static float divisor() {
  const float special[] = {0.0f, -0.0f, __builtin_inff(), __builtin_nanf(""), 0x1p-24f, 0x1p24f,
                           0x1.fffffep-25f, 0x1.000002p24f, -1.0f, 0x1p-149f};
  const u64 r = next();
  switch (r % 8) {
    case 0: return special[r / 8 % 10];
    case 1: return of_exponent(102, 3);   // around 2^-24
    case 2: return of_exponent(150, 3);   // around 2^24
    case 3: return __uint_as_float((unsigned)(r >> 16));
    default: return fabsf(of_exponent(103, 49));
  }
}
PROOF void at_random(u64 count, u64 seed, Found& found) {
  state = seed;
  while (found.tested < count) {
    const float b = divisor();
    float one[1] = {numerator()};
    check(one, b, found);
    float four[4];
    const bool usual = next() % 2;  // so that the vector is not always divided anew
    for (float& a : four) a = usual ? of_exponent(40, 100) : numerator();
    check(four, b, found);
  }
}
)";

struct Found {
  unsigned long long tested = 0, wrong = 0;
  float a = 0, b = 0, got = 0, wanted = 0;
};

ProofResult result_of(const Found& found) {
  ProofResult result{.tested = found.tested, .wrong = found.wrong};
  if (found.wrong > 0)
    result.first_wrong =
        fmt::format("{:a} / {:a} gave {:a}, not {:a}", found.a, found.b, found.got, found.wanted);
  return result;
}

/// The nearest reciprocal, or one that a proof sets.
constexpr const char* reciprocal_approximate = R"(
static float approximation;
static float reciprocal_approximate(float b) { return approximation != 0.0f ? approximation : 1.0f / b; }
)";

CudaOnHost proof() {
  return {
      {"divisor_reciprocal", "divide_vector"}, {{"reciprocal_approximate", reciprocal_approximate}}, text};
}

}  // namespace

ProofResult prove_reciprocals() {
  Found found;
  proof().function<void(Found&)>("reciprocals")(found);
  return result_of(found);
}

ProofResult prove_division_near_middles() {
  Found found;
  proof().function<void(Found&)>("near_middles")(found);
  return result_of(found);
}

ProofResult test_divisions(std::uint64_t count, std::uint64_t seed) {
  Found found;
  proof().function<void(unsigned long long, unsigned long long, Found&)>("at_random")(count, seed, found);
  return result_of(found);
}

}  // namespace fuse::test
