// Philox 4x32-10 (Salmon and others, SC 2011).
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> random_primitives() {
  return {
      // Block `block` of four words of a draw.
      {.name = "random_words",
       .cuda = R"(struct random_block { unsigned w[4]; };
__device__ inline unsigned long long wide_product(unsigned a, unsigned b) {
  unsigned long long product;  // nvcc's own of two 64-bit words adds zeros to it
  asm("mul.wide.u32 %0, %1, %2;" : "=l"(product) : "r"(a), "r"(b));
  return product;
}
__device__ inline random_block random_words(long long seed, long long offset, long long stream, long long block) {
  unsigned c0 = static_cast<unsigned>(block), c1 = static_cast<unsigned>(block >> 32);
  unsigned c2 = static_cast<unsigned>(stream), c3 = static_cast<unsigned>(offset);
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = wide_product(c0, 0xD2511F53u), b = wide_product(c2, 0xCD9E8D57u);
    c0 = static_cast<unsigned>(b >> 32) ^ c1 ^ k0, c1 = static_cast<unsigned>(b);
    c2 = static_cast<unsigned>(a >> 32) ^ c3 ^ k1, c3 = static_cast<unsigned>(a);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
)",
       .host = R"(struct random_block { unsigned w[4]; };
inline random_block random_words(long long seed, long long offset, long long stream, long long block) {
  unsigned c0 = static_cast<unsigned>(block), c1 = static_cast<unsigned>(block >> 32);
  unsigned c2 = static_cast<unsigned>(stream), c3 = static_cast<unsigned>(offset);
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
  for (int round = 0; round < 10; ++round) {
    const unsigned long long a = 0xD2511F53ull * c0, b = 0xCD9E8D57ull * c2;
    c0 = static_cast<unsigned>(b >> 32) ^ c1 ^ k0, c1 = static_cast<unsigned>(b);
    c2 = static_cast<unsigned>(a >> 32) ^ c3 ^ k1, c3 = static_cast<unsigned>(a);
    k0 += 0x9E3779B9u, k1 += 0xBB67AE85u;
  }
  return {{c0, c1, c2, c3}};
}
)"},
      // n neighbours from element i on, a multiple of n: a number of f32 takes one word of a block, one of
      // f64 takes two.
      {.name = "random_values",
       .cuda = R"(__device__ inline float random_value(const random_block& r, int at, float) {
  return static_cast<float>(r.w[at] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
__device__ inline double random_value(const random_block& r, int at, double) {
  const unsigned long long bits = static_cast<unsigned long long>(r.w[2 * at + 1]) << 32 | r.w[2 * at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
template <class T, int n>
__device__ inline void random_values(T (&to)[n], long long seed, long long offset, long long stream, long long i) {
  constexpr int numbers = 16 / sizeof(T);  // of a block
  const int at = n < numbers ? static_cast<int>(i) & (numbers - 1) : 0;
#pragma unroll
  for (int k = 0; k < n; k += numbers) {
    const random_block r = random_words(seed, offset, stream, i / numbers + k / numbers);
#pragma unroll
    for (int j = 0; j < numbers && k + j < n; ++j) to[k + j] = random_value(r, at + j, T());
  }
}
)",
       .host = R"(inline float random_value(const random_block& r, int at, float) {
  return static_cast<float>(r.w[at] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
inline double random_value(const random_block& r, int at, double) {
  const unsigned long long bits = static_cast<unsigned long long>(r.w[2 * at + 1]) << 32 | r.w[2 * at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
template <class T, int n>
inline void random_values(T (&to)[n], long long seed, long long offset, long long stream, long long i) {
  constexpr int numbers = 16 / sizeof(T);  // of a block
  const int at = n < numbers ? static_cast<int>(i) & (numbers - 1) : 0;
  for (int k = 0; k < n; k += numbers) {
    const random_block r = random_words(seed, offset, stream, i / numbers + k / numbers);
    for (int j = 0; j < numbers && k + j < n; ++j) to[k + j] = random_value(r, at + j, T());
  }
}
)",
       .needs = {"random_words"}},
      {.name = "random_uniform_f32",
       .cuda =
           R"(__device__ inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  float value[1];
  random_values(value, seed, offset, stream, i);
  return value[0];
}
)",
       .host =
           R"(inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  float value[1];
  random_values(value, seed, offset, stream, i);
  return value[0];
}
)",
       .needs = {"random_values"}},
      {.name = "random_uniform_f64",
       .cuda =
           R"(__device__ inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  double value[1];
  random_values(value, seed, offset, stream, i);
  return value[0];
}
)",
       .host =
           R"(inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  double value[1];
  random_values(value, seed, offset, stream, i);
  return value[0];
}
)",
       .needs = {"random_values"}},
      {.name = "random_vector",
       .cuda = R"(template <class T, int n>
__device__ inline void random_vector(T (&to)[n], long long seed, long long offset, long long stream, long long i) {
  random_values(to, seed, offset, stream, i);
}
)",
       .host = R"(template <class T, int n>
static void random_vector(T (&to)[n], long long seed, long long offset, long long stream, long long i) {
  random_values(to, seed, offset, stream, i);
}
)",
       .checked_host = R"(template <class T, int n>
static void random_vector(local_array<T, n>& to, long long seed, long long offset, long long stream, long long i) {
  random_values(to.value, seed, offset, stream, i);
  for (int k = 0; k < n; ++k) to.written[k] = true;
}
)",
       .needs = {"random_values"},
       .member = true},
  };
}

}  // namespace fuse::codegen
