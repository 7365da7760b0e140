// Two elements of f16 or bf16 at a time: loads, stores, one rounding for both, and the ops of Trait::pairs.
//
// add, sub and mul round once, with the bits of an f32 op and a conversion: the significand of f32 has at
// least twice as many bits as that of a half, and two more. bf16 before sm_90 has fused operations alone:
// a + b is a * 1 + b, a - b is b * -1 + a, and a * b is a * b + -0. Rounding modes are written out, so that
// no compiler fuses what the graph keeps apart.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> pair_primitives() {
  return {
      {.name = "pair",
       .cuda = R"(template <class T> struct pair { unsigned bits; };
)",
       .host = R"(template <class T> struct pair { T first, second; };
)"},
      {.name = "load_pair",
       .cuda = R"(template <class T, int n, class I>
__device__ inline pair<T> load_pair(const T (&from)[n], I i) {
  pair<T> v;
  memcpy(&v.bits, from + i, sizeof v.bits);
  return v;
}
)",
       .host = R"(template <class T, int n, class I> static pair<T> load_pair(const T (&from)[n], I i) {
  return {from[i], from[i + 1]};
}
)",
       .checked_host = R"(template <class T, int n, class I>
static pair<T> load_pair(const local_array<T, n>& from, I i, int line = __builtin_LINE()) {
  return {load(from, i, line), load(from, i + 1, line)};
}
)",
       .needs = {"pair", "local"},
       .member = true},
      {.name = "store_pair",
       .cuda = R"(template <class T, int n, class I>
__device__ inline void store_pair(T (&to)[n], I i, pair<T> v) {
  memcpy(to + i, &v.bits, sizeof v.bits);
}
)",
       .host = R"(template <class T, int n, class I> static void store_pair(T (&to)[n], I i, pair<T> v) {
  to[i] = v.first, to[i + 1] = v.second;
}
)",
       .checked_host = R"(template <class T, int n, class I>
static void store_pair(local_array<T, n>& to, I i, pair<T> v, int line = __builtin_LINE()) {
  store(to, i, v.first, line);
  store(to, i + 1, v.second, line);
}
)",
       .needs = {"pair", "local"},
       .member = true},
      {.name = "pair_of",
       .cuda = R"(template <class T>
__device__ inline pair<T> pair_of(T a, T b) {
  return {static_cast<unsigned>(a.bits) | static_cast<unsigned>(b.bits) << 16};
}
template <class T>
__device__ inline pair<T> pair_of(float a, float b);
template <>
__device__ inline pair<f16> pair_of(float a, float b) {
#if __CUDA_ARCH__ >= 800
  pair<f16> r;
  asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(r.bits) : "f"(b), "f"(a));
  return r;
#else
  return pair_of(to_f16(a), to_f16(b));
#endif
}
template <>
__device__ inline pair<bf16> pair_of(float a, float b) {
#if __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r.bits) : "f"(b), "f"(a));
  return r;
#else
  return pair_of(to_bf16(a), to_bf16(b));
#endif
}
)",
       .host = R"(inline f16 rounded(float v, f16) { return to_f16(v); }
inline bf16 rounded(float v, bf16) { return to_bf16(v); }
template <class T> inline pair<T> pair_of(T a, T b) { return {a, b}; }
template <class T> inline pair<T> pair_of(float a, float b) { return {rounded(a, T{}), rounded(b, T{})}; }
)",
       .needs = {"pair", "f16", "bf16", "to_f16", "to_bf16"}},
      {.name = "first",
       .cuda = R"(template <class T>
__device__ inline T first(pair<T> v) { return {static_cast<unsigned short>(v.bits)}; }
)",
       .host = R"(template <class T> inline T first(pair<T> v) { return v.first; }
)",
       .needs = {"pair"}},
      {.name = "second",
       .cuda = R"(template <class T>
__device__ inline T second(pair<T> v) { return {static_cast<unsigned short>(v.bits >> 16)}; }
)",
       .host = R"(template <class T> inline T second(pair<T> v) { return v.second; }
)",
       .needs = {"pair"}},
      {.name = "first_f32",
       .cuda = R"(__device__ inline float first_f32(pair<f16> v) { return to_f32(first(v)); }
__device__ inline float first_f32(pair<bf16> v) { return __uint_as_float(v.bits << 16); }
)",
       .host = R"(template <class T> inline float first_f32(pair<T> v) { return to_f32(v.first); }
)",
       .needs = {"first", "to_f32"}},
      {.name = "second_f32",
       .cuda = R"(__device__ inline float second_f32(pair<f16> v) { return to_f32(second(v)); }
__device__ inline float second_f32(pair<bf16> v) { return __uint_as_float(v.bits & 0xffff0000u); }
)",
       .host = R"(template <class T> inline float second_f32(pair<T> v) { return to_f32(v.second); }
)",
       .needs = {"second", "to_f32"}},
      // What an architecture does not have is computed in f32, each element for itself.
      {.name = "each_of_pair",
       .cuda = R"(template <class T, class F>
__device__ inline pair<T> each_of_pair(pair<T> a, pair<T> b, F f) {
  return pair_of<T>(f(first_f32(a), first_f32(b)), f(second_f32(a), second_f32(b)));
}
)",
       .host = R"(template <class T, class F> inline pair<T> each_of_pair(pair<T> a, pair<T> b, F f) {
  return pair_of<T>(f(to_f32(a.first), to_f32(b.first)), f(to_f32(a.second), to_f32(b.second)));
}
)",
       .needs = {"pair_of", "first_f32", "second_f32"}},
      {.name = "add_pair",
       .cuda = R"(__device__ inline pair<f16> add_pair(pair<f16> a, pair<f16> b) {
  pair<f16> r;
  asm("add.rn.f16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
}
__device__ inline pair<bf16> add_pair(pair<bf16> a, pair<bf16> b) {
#if __CUDA_ARCH__ >= 900
  pair<bf16> r;
  asm("add.rn.bf16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#elif __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r.bits) : "r"(a.bits), "r"(0x3f803f80), "r"(b.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return x + y; });
#endif
}
)",
       .host = R"(template <class T> inline pair<T> add_pair(pair<T> a, pair<T> b) {
  return each_of_pair(a, b, [](float x, float y) { return x + y; });
}
)",
       .needs = {"each_of_pair"}},
      {.name = "sub_pair",
       .cuda = R"(__device__ inline pair<f16> sub_pair(pair<f16> a, pair<f16> b) {
  pair<f16> r;
  asm("sub.rn.f16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
}
__device__ inline pair<bf16> sub_pair(pair<bf16> a, pair<bf16> b) {
#if __CUDA_ARCH__ >= 900
  pair<bf16> r;
  asm("sub.rn.bf16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#elif __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r.bits) : "r"(b.bits), "r"(0xbf80bf80), "r"(a.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return x - y; });
#endif
}
)",
       .host = R"(template <class T> inline pair<T> sub_pair(pair<T> a, pair<T> b) {
  return each_of_pair(a, b, [](float x, float y) { return x - y; });
}
)",
       .needs = {"each_of_pair"}},
      {.name = "mul_pair",
       .cuda = R"(__device__ inline pair<f16> mul_pair(pair<f16> a, pair<f16> b) {
  pair<f16> r;
  asm("mul.rn.f16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
}
__device__ inline pair<bf16> mul_pair(pair<bf16> a, pair<bf16> b) {
#if __CUDA_ARCH__ >= 900
  pair<bf16> r;
  asm("mul.rn.bf16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#elif __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("fma.rn.bf16x2 %0, %1, %2, %3;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits), "r"(0x80008000));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return x * y; });
#endif
}
)",
       .host = R"(template <class T> inline pair<T> mul_pair(pair<T> a, pair<T> b) {
  return each_of_pair(a, b, [](float x, float y) { return x * y; });
}
)",
       .needs = {"each_of_pair"}},
      {.name = "max_pair",
       .cuda = R"(__device__ inline pair<f16> max_pair(pair<f16> a, pair<f16> b) {
#if __CUDA_ARCH__ >= 800
  pair<f16> r;
  asm("max.NaN.f16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return maximum(x, y); });
#endif
}
__device__ inline pair<bf16> max_pair(pair<bf16> a, pair<bf16> b) {
#if __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("max.NaN.bf16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return maximum(x, y); });
#endif
}
)",
       .host = R"(template <class T> inline pair<T> max_pair(pair<T> a, pair<T> b) {
  return each_of_pair(a, b, [](float x, float y) { return maximum(x, y); });
}
)",
       .needs = {"maximum", "each_of_pair"}},
      {.name = "min_pair",
       .cuda = R"(__device__ inline pair<f16> min_pair(pair<f16> a, pair<f16> b) {
#if __CUDA_ARCH__ >= 800
  pair<f16> r;
  asm("min.NaN.f16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return minimum(x, y); });
#endif
}
__device__ inline pair<bf16> min_pair(pair<bf16> a, pair<bf16> b) {
#if __CUDA_ARCH__ >= 800
  pair<bf16> r;
  asm("min.NaN.bf16x2 %0, %1, %2;" : "=r"(r.bits) : "r"(a.bits), "r"(b.bits));
  return r;
#else
  return each_of_pair(a, b, [](float x, float y) { return minimum(x, y); });
#endif
}
)",
       .host = R"(template <class T> inline pair<T> min_pair(pair<T> a, pair<T> b) {
  return each_of_pair(a, b, [](float x, float y) { return minimum(x, y); });
}
)",
       .needs = {"minimum", "each_of_pair"}},
      // Computed by a product, which makes any NaN the one that a conversion gives.
      {.name = "neg_pair",
       .cuda = R"(template <class T>
__device__ inline pair<T> neg_pair(pair<T> a) { return mul_pair(a, pair_of<T>(-1.0f, -1.0f)); }
)",
       .host =
           R"(template <class T> inline pair<T> neg_pair(pair<T> a) { return mul_pair(a, pair_of<T>(-1.0f, -1.0f)); }
)",
       .needs = {"mul_pair", "pair_of"}},
      {.name = "abs_pair",
       .cuda = R"(template <class T>
__device__ inline pair<T> abs_pair(pair<T> a) { return max_pair(a, neg_pair(a)); }
)",
       .host = R"(template <class T> inline pair<T> abs_pair(pair<T> a) { return max_pair(a, neg_pair(a)); }
)",
       .needs = {"max_pair", "neg_pair"}},
  };
}

}  // namespace fuse::codegen
