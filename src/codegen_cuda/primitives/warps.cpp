// Exchanges between the threads of a warp.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> warp_primitives() {
  return {
      // Warp exchanges take all 32 lanes. On the host one rendezvous serves a whole butterfly.
      {.name = "warp_barrier",
       .cuda = R"(__device__ inline void warp_barrier() { __syncwarp(); }
)",
       .host = R"(void warp_barrier(int line = __builtin_LINE()) { exchange(0, "warp_barrier", line); }
)",
       .communicates = true},
      {.name = "shuffle_xor",
       .cuda = R"(template <class T>
__device__ inline T shuffle_xor(T v, int d) { return __shfl_xor_sync(0xffffffffu, v, d); }
)",
       .host = R"(template <class T> T shuffle_xor(T v, int d, int line = __builtin_LINE()) {
  return unpack<T>(exchange(pack(v), "shuffle_xor", line)->value[(threadIdx.x ^ d) & 31]);
}
)",
       .communicates = true},
      {.name = "warp_sum",
       .cuda = R"(template <class T>
__device__ inline T warp_sum(T v) {
  for (int d = 16; d > 0; d >>= 1) v = v + shuffle_xor(v, d);
  return v;
}
)",
       .host = R"(struct plus {
  template <class T> T operator()(T a, T b) const { return a + b; }
};
template <class T> T warp_sum(T v, int line = __builtin_LINE()) { return butterfly(v, plus{}, "warp_sum", line); }
)",
       .needs = {"shuffle_xor"},
       .communicates = true},
      // carry plus the values of the lanes up to this one, by doubling distances; carry becomes the last
      // lane's.
      {.name = "warp_scan_sum",
       .cuda = R"(template <class T>
__device__ inline T warp_scan_sum(T v, T& carry) {
  const int lane = threadIdx.x & 31;
  for (int d = 1; d < 32; d <<= 1) {
    const T below = __shfl_up_sync(0xffffffffu, v, d);
    if (lane >= d) v = below + v;
  }
  v = carry + v;
  carry = __shfl_sync(0xffffffffu, v, 31);
  return v;
}
)",
       .host = R"(template <class T> T warp_scan_sum(T v, T& carry, int line = __builtin_LINE()) {
  const fuse_slots* s = exchange(pack(v), "warp_scan_sum", line);
  T t[32];
#pragma GCC unroll 1
  for (int i = 0; i < 32; ++i) t[i] = unpack<T>(s->value[i]);
#pragma GCC unroll 1
  for (int d = 1; d < 32; d <<= 1)
#pragma GCC unroll 1
    for (int i = 31; i >= d; --i) t[i] = t[i - d] + t[i];
  const T result = carry + t[threadIdx.x & 31];
  carry = carry + t[31];
  return result;
}
)",
       .communicates = true},
      {.name = "warp_prod",
       .cuda = R"(template <class T>
__device__ inline T warp_prod(T v) {
  for (int d = 16; d > 0; d >>= 1) v = v * shuffle_xor(v, d);
  return v;
}
)",
       .host = R"(struct times {
  template <class T> T operator()(T a, T b) const { return a * b; }
};
template <class T> T warp_prod(T v, int line = __builtin_LINE()) { return butterfly(v, times{}, "warp_prod", line); }
)",
       .needs = {"shuffle_xor"},
       .communicates = true},
      {.name = "warp_max",
       .cuda = R"(template <class T>
__device__ inline T warp_max(T v) {
  for (int d = 16; d > 0; d >>= 1) v = maximum(v, shuffle_xor(v, d));
  return v;
}
)",
       .host = R"(struct larger {
  template <class T> T operator()(T a, T b) const { return maximum(a, b); }
};
template <class T> T warp_max(T v, int line = __builtin_LINE()) { return butterfly(v, larger{}, "warp_max", line); }
)",
       .needs = {"maximum", "shuffle_xor"},
       .communicates = true},
      {.name = "warp_min",
       .cuda = R"(template <class T>
__device__ inline T warp_min(T v) {
  for (int d = 16; d > 0; d >>= 1) v = minimum(v, shuffle_xor(v, d));
  return v;
}
)",
       .host = R"(struct smaller {
  template <class T> T operator()(T a, T b) const { return minimum(a, b); }
};
template <class T> T warp_min(T v, int line = __builtin_LINE()) { return butterfly(v, smaller{}, "warp_min", line); }
)",
       .needs = {"minimum", "shuffle_xor"},
       .communicates = true},
  };
}

}  // namespace fuse::codegen
