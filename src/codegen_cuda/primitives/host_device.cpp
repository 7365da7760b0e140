// What stands around the C++ bodies. SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

// CUDA declares these itself. rsqrt is one division and one root, each rounded. GCC's partial redundancy
// elimination makes branches of selects between a value and a constant, which neither vectors nor branch
// prediction like: a relu took 12 times as long. Its phiopt, of g++ 12.2, takes a zero for none after `v != 0
// ? v : c` (tests/fuzz/corpus/zero_of_a_select.fuse).
const std::string_view host_math = R"(
#if defined(__GNUC__) && !defined(__clang__)
#pragma GCC optimize("no-tree-pre", "no-ssa-phiopt")
#endif
#define FUSE_MATH(name)                        \
  extern "C" double name(double) noexcept;     \
  extern "C" float name##f(float) noexcept;    \
  static inline float name(float v) { return name##f(v); }
FUSE_MATH(exp) FUSE_MATH(log) FUSE_MATH(log1p) FUSE_MATH(expm1) FUSE_MATH(sin) FUSE_MATH(cos)
FUSE_MATH(tanh) FUSE_MATH(erf) FUSE_MATH(sqrt) FUSE_MATH(fabs) FUSE_MATH(floor) FUSE_MATH(ceil)
FUSE_MATH(exp2) FUSE_MATH(log2) FUSE_MATH(rint)
#undef FUSE_MATH
extern "C" double pow(double, double) noexcept;
extern "C" float powf(float, float) noexcept;
extern "C" double atan2(double, double) noexcept;
extern "C" float atan2f(float, float) noexcept;
static inline float atan2(float a, float b) { return atan2f(a, b); }
extern "C" double fmod(double, double) noexcept;
extern "C" float fmodf(float, float) noexcept;
extern "C" float copysignf(float, float) noexcept;
static inline float pow(float a, float b) { return powf(a, b); }
static inline float fmod(float a, float b) { return fmodf(a, b); }
static inline double rsqrt(double v) { return 1.0 / sqrt(v); }
static inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
static inline float rsqrt(float v) { return rsqrtf(v); }
)";

// Sums, products, maxima and minima commute, so that the tree has the same result in every lane.
const std::string_view host_device = R"(struct index3 { unsigned x, y, z; };
struct fuse_device {
const fuse_call* call_;
index3 threadIdx, blockIdx, blockDim, gridDim;
template <class T> static unsigned long long pack(T v) {
  unsigned long long u = 0;
  __builtin_memcpy(&u, &v, sizeof v);
  return u;
}
template <class T> static T unpack(unsigned long long u) {
  T v;
  __builtin_memcpy(&v, &u, sizeof v);
  return v;
}
fuse_slots* exchange(unsigned long long bits, const char* what, int line) {
  return call_->exchange(call_->runner, bits, what, line);
}
template <class T, class F>
__attribute__((noinline)) T butterfly(T v, F combine, const char* what, int line) {
  fuse_slots* s = exchange(pack(v), what, line);
  if (!s->reduced) reduce<T>(s, combine);
  return unpack<T>(s->result);
}
template <class T, class F> static void reduce(fuse_slots* s, F combine) {
  T t[32];
#pragma GCC unroll 1
  for (int i = 0; i < 32; ++i) t[i] = unpack<T>(s->value[i]);
#pragma GCC unroll 1
  for (int d = 16; d > 0; d >>= 1)
#pragma GCC unroll 1
    for (int i = 0; i < d; ++i) t[i] = combine(t[i], t[i + d]);
  s->result = pack(t[0]);
  s->reduced = 1;
}
)";

}  // namespace fuse::codegen
