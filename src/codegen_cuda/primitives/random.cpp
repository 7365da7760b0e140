// Philox 4x32-10 (Salmon and others, SC 2011).
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> random_primitives() {
  return {
      // Philox 4x32-10 (Salmon and others, SC 2011): block `block` of four words of a draw.
      {.name = "random_words",
       .cuda = R"(struct random_block { unsigned w[4]; };
__device__ inline random_block random_words(long long seed, long long offset, long long stream, long long block) {
  unsigned c0 = static_cast<unsigned>(block), c1 = static_cast<unsigned>(block >> 32);
  unsigned c2 = static_cast<unsigned>(stream), c3 = static_cast<unsigned>(offset);
  unsigned k0 = static_cast<unsigned>(seed), k1 = static_cast<unsigned>(seed >> 32);
#pragma unroll
  for (int round = 0; round < 10; ++round) {
    const unsigned a = 0xD2511F53u * c0, b = 0xCD9E8D57u * c2;
    const unsigned n0 = __umulhi(0xCD9E8D57u, c2) ^ c1 ^ k0, n2 = __umulhi(0xD2511F53u, c0) ^ c3 ^ k1;
    c0 = n0, c1 = b, c2 = n2, c3 = a;
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
      {.name = "random_uniform_f32",
       .cuda =
           R"(__device__ inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  return static_cast<float>(random_words(seed, offset, stream, i >> 2).w[i & 3] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
)",
       .host =
           R"(inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  return static_cast<float>(random_words(seed, offset, stream, i >> 2).w[i & 3] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
)",
       .needs = {"random_words"}},
      {.name = "random_uniform_f64",
       .cuda =
           R"(__device__ inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  const random_block r = random_words(seed, offset, stream, i >> 1);
  const int at = static_cast<int>(i & 1) * 2;
  const unsigned long long bits = static_cast<unsigned long long>(r.w[at + 1]) << 32 | r.w[at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
)",
       .host =
           R"(inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  const random_block r = random_words(seed, offset, stream, i >> 1);
  const int at = static_cast<int>(i & 1) * 2;
  const unsigned long long bits = static_cast<unsigned long long>(r.w[at + 1]) << 32 | r.w[at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
)",
       .needs = {"random_words"}},
  };
}

}  // namespace fuse::codegen
