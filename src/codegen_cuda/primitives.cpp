// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives.hpp"

#include <algorithm>
#include <unordered_map>

#include "runtime/emulated/abi.hpp"

namespace fuse::codegen {
namespace {

// The table. Host bodies of the rows `is_member` names stand inside `struct fuse_device`.
std::vector<Primitive> make_table() {
  return {
      {"kernel",
       R"(#define FUSE_KERNEL(...) extern "C" __global__ void __launch_bounds__(__VA_ARGS__)
)",
       R"(#define FUSE_KERNEL(...) inline __attribute__((always_inline)) void
)",
       {}},
      // Behind FUSE_KERNEL(...): the size is fixed when the text is compiled, so that a launch need not name
      // it.
      {"cluster_size",
       R"(#define FUSE_CLUSTER(n) __cluster_dims__(n, 1, 1)
)",
       R"(#define FUSE_CLUSTER(n)
)",
       {}},

      {"f16", "struct f16 { unsigned short bits; };\n", "struct f16 { unsigned short bits; };\n", {}},
      {"bf16", "struct bf16 { unsigned short bits; };\n", "struct bf16 { unsigned short bits; };\n", {}},

      // Where blocks wait for each other they read what others wrote, which a restrict pointer's loads may
      // miss: compilers keep the value that was read before the barrier.
      {"global",
       R"(template <class T>
using global = T* __restrict__;
)",
       R"(template <class T> struct global_of { using type = T*; };
template <class T> struct global_of<const T> { using type = const T* __restrict__; };
template <class T> using global = typename global_of<T>::type;
)",
       {},
       false,
       R"(template <class T> struct global_of { using type = T*; };
template <class T> struct global_of<const T> { using type = const T* __restrict__; };
template <class T>
using global = typename global_of<T>::type;
)"},
      {"load",
       R"(template <class T, class I>
__device__ inline T load(const T* p, I i) { return p[i]; }
)",
       R"(template <class T, class I> static T load(const T* p, I i) { return p[i]; }
)",
       {}},
      {"store",
       R"(template <class T, class I, class V>
__device__ inline void store(T* p, I i, V v) { p[i] = v; }
)",
       R"(template <class T, class I, class V> static void store(T* p, I i, V v) { p[i] = v; }
)",
       {}},
      {"shared",
       R"(#define FUSE_SHARED(T, n, name) __shared__ T name[n]
)",
       R"(#define FUSE_SHARED(T, n, name) T* const name = shared_array<T>(n, #name, __LINE__)
template <class T> T* shared_array(long long n, const char* name, int line) {
  return reinterpret_cast<T*>(call_->shared(call_->runner, sizeof(T), n, name, line).address);
}
)",
       {}},
      // A thread's own: registers, where unrolled loops name the elements.
      {"local",
       R"(#define FUSE_LOCAL(T, n, name) T name[n]
)",
       R"(#define FUSE_LOCAL(T, n, name) T name[n]
)",
       {}},
      // Between an array and as many elements in memory, 16 bytes at most and aligned to their size.
      {"vector_bits",
       R"(template <int bytes> struct vector_bits;
template <> struct vector_bits<2> { using type = unsigned short; };
template <> struct vector_bits<4> { using type = unsigned; };
template <> struct vector_bits<8> { using type = uint2; };
template <> struct vector_bits<16> { using type = uint4; };
)",
       "template <int bytes> struct vector_bits;\n",
       {}},
      {"load_vector",
       R"(template <class T, int n, class I>
__device__ inline void load_vector(T (&to)[n], const T* p, I i) {
  const auto bits = *reinterpret_cast<const typename vector_bits<n * sizeof(T)>::type*>(p + i);
  memcpy(to, &bits, sizeof bits);
}
)",
       R"(template <class T, int n, class I> static void load_vector(T (&to)[n], const T* p, I i) {
  __builtin_memcpy(to, p + i, n * sizeof(T));
}
)",
       {"vector_bits"}},
      {"store_vector",
       R"(template <class T, int n, class I>
__device__ inline void store_vector(T* p, I i, const T (&from)[n]) {
  typename vector_bits<n * sizeof(T)>::type bits;
  memcpy(&bits, from, sizeof bits);
  *reinterpret_cast<decltype(bits)*>(p + i) = bits;
}
)",
       R"(template <class T, int n, class I> static void store_vector(T* p, I i, const T (&from)[n]) {
  __builtin_memcpy(p + i, from, n * sizeof(T));
}
)",
       {"vector_bits"}},
      {"block_barrier",
       R"(__device__ inline void block_barrier() { __syncthreads(); }
)",
       R"(void block_barrier(int line = __builtin_LINE()) { call_->barrier(call_->runner, line); }
)",
       {},
       true},
      // Each block adds one for each barrier that it comes to, and the counter is never reset: a block that
      // hurries on cannot be missed by those that still look. The acquire and release order what the block's
      // other threads access as well, by its two block barriers.
      // Blocks that have the same number by `blocks` wait for each other, if there are as many.
      {"group_barrier",
       R"(__device__ inline void group_barrier(int* counters, int first, unsigned blocks) {
  const unsigned block = blockIdx.x + gridDim.x * (blockIdx.y + gridDim.y * blockIdx.z);
  const unsigned group = block / blocks;
  block_barrier();
  if (threadIdx.x == 0 && group < gridDim.x * gridDim.y * gridDim.z / blocks) {
    int* const counter = counters + first + group;
    unsigned count;
    asm volatile("atom.add.release.gpu.u32 %0, [%1], 1;" : "=r"(count) : "l"(counter) : "memory");
    const unsigned all = (count / blocks + 1) * blocks;
    for (;;) {
      asm volatile("ld.acquire.gpu.u32 %0, [%1];" : "=r"(count) : "l"(counter) : "memory");
      if (count >= all) break;
      __nanosleep(32);
    }
  }
  block_barrier();
}
)",
       R"(void group_barrier(int* counters, int first, unsigned blocks, int line = __builtin_LINE()) {
  call_->group_barrier(call_->runner, counters + first, blocks, line);
}
)",
       {"block_barrier"},
       true},
      {"grid_barrier",
       R"(__device__ inline void grid_barrier(int* counter) {
  group_barrier(counter, 0, gridDim.x * gridDim.y * gridDim.z);
}
)",
       R"(void grid_barrier(int* counter, int line = __builtin_LINE()) {
  call_->grid_barrier(call_->runner, counter, line);
}
)",
       {"group_barrier"},
       true},
      // The release and the acquire are of the cluster: shared memory of its blocks and global memory. Not
      // .aligned, as CUDA's own: lanes may have parted before.
      {"cluster_barrier",
       R"(__device__ inline void cluster_barrier() {
  asm volatile("barrier.cluster.arrive.release;\n\tbarrier.cluster.wait.acquire;" ::: "memory");
}
)",
       R"(void cluster_barrier(int line = __builtin_LINE()) { call_->cluster_barrier(call_->runner, line); }
)",
       {},
       true},
      // Element i of the array where the block of that rank has it.
      {"cluster_load",
       R"(template <class T, class I, class R>
__device__ inline T cluster_load(const T* p, I i, R rank) {
  return *static_cast<const T*>(__cluster_map_shared_rank(p + i, static_cast<int>(rank)));
}
)",
       R"(template <class T, class I, class R>
T cluster_load(const T* p, I i, R rank, int line = __builtin_LINE()) {
  return reinterpret_cast<const T*>(
      call_->peer(call_->runner, reinterpret_cast<const char*>(p), i, rank, sizeof(T), line))[i];
}
)",
       {},
       true},

      {"infinity_f32",
       R"(__device__ inline float infinity_f32() { return __int_as_float(0x7f800000); }
)",
       R"(inline float infinity_f32() { return __builtin_inff(); }
)",
       {}},
      {"infinity_f64",
       R"(__device__ inline double infinity_f64() { return __longlong_as_double(0x7ff0000000000000); }
)",
       R"(inline double infinity_f64() { return __builtin_inf(); }
)",
       {}},
      {"nan_f32",
       R"(__device__ inline float nan_f32() { return __int_as_float(0x7fc00000); }
)",
       R"(inline float nan_f32() { return __builtin_nanf(""); }
)",
       {}},
      {"nan_f64",
       R"(__device__ inline double nan_f64() { return __longlong_as_double(0x7ff8000000000000); }
)",
       R"(inline double nan_f64() { return __builtin_nan(""); }
)",
       {}},

      // A NaN on either side wins; equal operands (also +0 and -0) give the first.
      {"maximum",
       R"(template <class T>
__device__ inline T maximum(T a, T b) { return b > a || b != b ? b : a; }
)",
       R"(template <class T> inline T maximum(T a, T b) { return b > a || b != b ? b : a; }
)",
       {}},
      {"minimum",
       R"(template <class T>
__device__ inline T minimum(T a, T b) { return b < a || b != b ? b : a; }
)",
       R"(template <class T> inline T minimum(T a, T b) { return b < a || b != b ? b : a; }
)",
       {}},
      {"divide",
       R"(__device__ inline float divide(float a, float b) { return a / b; }
__device__ inline double divide(double a, double b) { return a / b; }
__device__ inline int divide(int a, int b) {
  return b == 0 ? 0 : b == -1 ? static_cast<int>(0u - a) : a / b;
}
__device__ inline long long divide(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? static_cast<long long>(0ull - a) : a / b;
}
)",
       R"(inline float divide(float a, float b) { return a / b; }
inline double divide(double a, double b) { return a / b; }
inline int divide(int a, int b) { return b == 0 ? 0 : b == -1 ? static_cast<int>(0u - a) : a / b; }
inline long long divide(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? static_cast<long long>(0ull - a) : a / b;
}
)",
       {}},
      {"remainder",
       R"(#define remainder truncated_remainder  // CUDA's own rounds the quotient to nearest
__device__ inline float remainder(float a, float b) { return fmodf(a, b); }
__device__ inline double remainder(double a, double b) { return fmod(a, b); }
__device__ inline int remainder(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ inline long long remainder(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
)",
       R"(#define remainder truncated_remainder
inline float remainder(float a, float b) { return fmodf(a, b); }
inline double remainder(double a, double b) { return fmod(a, b); }
inline int remainder(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }
inline long long remainder(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
)",
       {}},
      {"absolute",
       R"(__device__ inline float absolute(float a) { return fabsf(a); }
__device__ inline double absolute(double a) { return fabs(a); }
__device__ inline int absolute(int a) { return a < 0 ? static_cast<int>(0u - a) : a; }
__device__ inline long long absolute(long long a) { return a < 0 ? static_cast<long long>(0ull - a) : a; }
)",
       R"(inline float absolute(float a) { return fabsf(a); }
inline double absolute(double a) { return fabs(a); }
inline int absolute(int a) { return a < 0 ? static_cast<int>(0u - a) : a; }
inline long long absolute(long long a) { return a < 0 ? static_cast<long long>(0ull - a) : a; }
)",
       {}},
      // Index arithmetic: b is above 0.
      {"floor_div",
       R"(template <class A, class B>
__device__ inline A floor_div(A a, B b) { return static_cast<A>(a / b - (a % b < 0)); }
)",
       R"(template <class A, class B> inline A floor_div(A a, B b) { return static_cast<A>(a / b - (a % b < 0)); }
)",
       {}},
      {"floor_mod",
       R"(template <class A, class B>
__device__ inline A floor_mod(A a, B b) { return static_cast<A>(a % b + (a % b < 0 ? b : 0)); }
)",
       R"(template <class A, class B> inline A floor_mod(A a, B b) { return static_cast<A>(a % b + (a % b < 0 ? b : 0)); }
)",
       {}},
      {"is_infinite",
       R"(__device__ inline bool is_infinite(float a) { return fabsf(a) == infinity_f32(); }
__device__ inline bool is_infinite(double a) { return fabs(a) == infinity_f64(); }
)",
       R"(inline bool is_infinite(float a) { return fabsf(a) == infinity_f32(); }
inline bool is_infinite(double a) { return fabs(a) == infinity_f64(); }
)",
       {"infinity_f32", "infinity_f64"}},
      // C++ leaves shifts by a negative number or by the width open.
      {"shift_left",
       R"(template <class T>
__device__ inline T shift_left(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? 0 : static_cast<T>(static_cast<unsigned long long>(a) << b);
}
)",
       R"(template <class T>
inline T shift_left(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? 0 : static_cast<T>(static_cast<unsigned long long>(a) << b);
}
)",
       {}},
      {"shift_right",
       R"(template <class T>
__device__ inline T shift_right(T a, T b) {
  const T width = 8 * sizeof(T);
  return b >= 0 && b < width ? static_cast<T>(a >> b) : a < 0 ? static_cast<T>(-1) : 0;
}
)",
       R"(template <class T>
inline T shift_right(T a, T b) {
  const T width = 8 * sizeof(T);
  return b >= 0 && b < width ? static_cast<T>(a >> b) : a < 0 ? static_cast<T>(-1) : 0;
}
)",
       {}},
      {"sign",
       R"(template <class T>
__device__ inline T sign(T a) { return a != a ? a : static_cast<T>((a > 0) - (a < 0)); }
)",
       R"(template <class T> inline T sign(T a) { return a != a ? a : static_cast<T>((a > 0) - (a < 0)); }
)",
       {}},
      {"power",
       R"(template <class U, class T>
__device__ inline T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  U result = 1;
  U factor = base;
  for (U e = exponent; e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}
__device__ inline float power(float a, float b) { return powf(a, b); }
__device__ inline double power(double a, double b) { return pow(a, b); }
__device__ inline int power(int a, int b) { return integer_power<unsigned>(a, b); }
__device__ inline long long power(long long a, long long b) { return integer_power<unsigned long long>(a, b); }
)",
       R"(template <class U, class T> inline T integer_power(T base, T exponent) {
  if (exponent < 0) return base == 1 ? 1 : base == -1 ? (exponent & 1 ? -1 : 1) : 0;
  U result = 1;
  U factor = base;
  for (U e = exponent; e != 0; e >>= 1) {
    if (e & 1) result *= factor;
    factor *= factor;
  }
  return static_cast<T>(result);
}
inline float power(float a, float b) { return powf(a, b); }
inline double power(double a, double b) { return pow(a, b); }
inline int power(int a, int b) { return integer_power<unsigned>(a, b); }
inline long long power(long long a, long long b) { return integer_power<unsigned long long>(a, b); }
)",
       {}},

      // Conversions: one rounding to nearest even from any type.
      {"to_f32",
       R"(__device__ inline float to_f32(float v) { return v; }
__device__ inline float to_f32(double v) { return __double2float_rn(v); }
__device__ inline float to_f32(f16 v) {
  float r;
  asm("cvt.f32.f16 %0, %1;" : "=f"(r) : "h"(v.bits));
  return r;
}
__device__ inline float to_f32(bf16 v) { return __uint_as_float(static_cast<unsigned>(v.bits) << 16); }
__device__ inline float to_f32(long long v) { return __ll2float_rn(v); }
__device__ inline float to_f32(int v) { return __int2float_rn(v); }
__device__ inline float to_f32(bool v) { return v ? 1.0f : 0.0f; }
)",
       R"(inline float float_of_bits(unsigned u) { return __builtin_bit_cast(float, u); }
inline unsigned bits_of(float v) { return __builtin_bit_cast(unsigned, v); }
inline unsigned long long bits_of(double v) { return __builtin_bit_cast(unsigned long long, v); }
inline float to_f32(float v) { return v; }
inline float to_f32(double v) { return static_cast<float>(v); }
inline float to_f32(f16 v) {
  const unsigned sign = (v.bits & 0x8000u) << 16, exponent = v.bits >> 10 & 31, mantissa = v.bits & 1023;
  if (exponent == 0) return float_of_bits(sign | bits_of(static_cast<float>(mantissa) * 0x1p-24f));
  return float_of_bits(sign | (exponent == 31 ? 255 : exponent + 112) << 23 | mantissa << 13);
}
inline float to_f32(bf16 v) { return float_of_bits(static_cast<unsigned>(v.bits) << 16); }
inline float to_f32(long long v) { return static_cast<float>(v); }
inline float to_f32(int v) { return static_cast<float>(v); }
inline float to_f32(bool v) { return v ? 1.0f : 0.0f; }
)",
       {"f16", "bf16"}},
      {"to_f64",
       R"(__device__ inline double to_f64(double v) { return v; }
__device__ inline double to_f64(float v) { return v; }
__device__ inline double to_f64(f16 v) { return to_f32(v); }
__device__ inline double to_f64(bf16 v) { return to_f32(v); }
__device__ inline double to_f64(long long v) { return __ll2double_rn(v); }
__device__ inline double to_f64(int v) { return v; }
__device__ inline double to_f64(bool v) { return v ? 1.0 : 0.0; }
)",
       R"(inline double to_f64(double v) { return v; }
inline double to_f64(float v) { return v; }
inline double to_f64(f16 v) { return to_f32(v); }
inline double to_f64(bf16 v) { return to_f32(v); }
inline double to_f64(long long v) { return static_cast<double>(v); }
inline double to_f64(int v) { return v; }
inline double to_f64(bool v) { return v ? 1.0 : 0.0; }
)",
       {"to_f32"}},
      {"to_odd",
       R"(// Rounded toward zero with a sticky last bit: rounding this again to 11 or 8 bits is right.
__device__ inline float to_odd(double v) {
  const float f = __double2float_rz(v);
  return f == v ? f : __int_as_float(__float_as_int(f) | 1);
}
__device__ inline float to_odd(long long v) {
  const float f = __ll2float_rz(v);
  return __float2ll_rz(f) == v ? f : __int_as_float(__float_as_int(f) | 1);
}
)",
       R"(// A double that rounds to 11 or 8 bits as v does: bits below 2^11 of a large v become one sticky bit.
inline double to_odd(long long v) {
  const unsigned long long m = v < 0 ? 0ull - v : v;
  const double d = m >> 53 ? static_cast<double>(m >> 11 | ((m & 2047) != 0)) * 2048.0 : static_cast<double>(m);
  return v < 0 ? -d : d;
}
// Rounds once to a format of `mantissa` stored bits. A carry out of the significand moves into the exponent.
template <int mantissa, int bias> inline unsigned short round_16(double v) {
  const unsigned long long bits = bits_of(v), magnitude = bits & 0x7fffffffffffffffull;
  const unsigned sign = static_cast<unsigned>(bits >> 48) & 0x8000u;
  const unsigned infinity = (2 * bias + 1) << mantissa;
  if (magnitude > 0x7ff0000000000000ull) return static_cast<unsigned short>(sign | infinity | 1 << (mantissa - 1));
  int exponent = static_cast<int>(magnitude >> 52) - 1023 + bias;
  if (exponent > 2 * bias) return static_cast<unsigned short>(sign | infinity);
  int shift = 52 - mantissa;
  if (exponent < 1) {
    shift += 1 - exponent;
    exponent = 1;
  }
  if (shift > 63 || magnitude >> 52 == 0) return static_cast<unsigned short>(sign);
  const unsigned long long s = (magnitude & 0xfffffffffffffull) | 1ull << 52;
  const unsigned long long rest = s & ((1ull << shift) - 1), half = 1ull << (shift - 1);
  const unsigned q = static_cast<unsigned>(s >> shift);
  const unsigned up = rest > half || (rest == half && (q & 1));
  return static_cast<unsigned short>(sign | (((exponent - 1u) << mantissa) + q + up));
}
)",
       {}},
      {"to_f16",
       R"(__device__ inline f16 to_f16(f16 v) { return v; }
__device__ inline f16 to_f16(float v) {
  f16 r;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
}
__device__ inline f16 to_f16(double v) { return to_f16(to_odd(v)); }
__device__ inline f16 to_f16(bf16 v) { return to_f16(to_f32(v)); }
__device__ inline f16 to_f16(long long v) { return to_f16(to_odd(v)); }
__device__ inline f16 to_f16(int v) { return to_f16(to_odd(static_cast<long long>(v))); }
__device__ inline f16 to_f16(bool v) { return to_f16(v ? 1.0f : 0.0f); }
)",
       R"(inline f16 to_f16(f16 v) { return v; }
inline f16 to_f16(double v) { return {round_16<10, 15>(v)}; }
inline f16 to_f16(float v) { return to_f16(static_cast<double>(v)); }
inline f16 to_f16(bf16 v) { return to_f16(to_f64(v)); }
inline f16 to_f16(long long v) { return to_f16(to_odd(v)); }
inline f16 to_f16(int v) { return to_f16(static_cast<double>(v)); }
inline f16 to_f16(bool v) { return to_f16(v ? 1.0 : 0.0); }
)",
       {"to_f32", "to_odd"}},
      {"to_bf16",
       R"(__device__ inline bf16 to_bf16(bf16 v) { return v; }
__device__ inline bf16 to_bf16(float v) {
#if __CUDA_ARCH__ >= 800
  bf16 r;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(r.bits) : "f"(v));
  return r;
#else
  const unsigned u = __float_as_uint(v);
  if (v != v) return {0x7fff};
  return {static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
#endif
}
__device__ inline bf16 to_bf16(double v) { return to_bf16(to_odd(v)); }
__device__ inline bf16 to_bf16(f16 v) { return to_bf16(to_f32(v)); }
__device__ inline bf16 to_bf16(long long v) { return to_bf16(to_odd(v)); }
__device__ inline bf16 to_bf16(int v) { return to_bf16(to_odd(static_cast<long long>(v))); }
__device__ inline bf16 to_bf16(bool v) { return to_bf16(v ? 1.0f : 0.0f); }
)",
       R"(inline bf16 to_bf16(bf16 v) { return v; }
inline bf16 to_bf16(float v) {
  const unsigned u = bits_of(v);
  if (v != v) return {0x7fff};
  return {static_cast<unsigned short>((u + 0x7fff + (u >> 16 & 1)) >> 16)};
}
inline bf16 to_bf16(double v) { return v != v ? bf16{0x7fff} : bf16{round_16<7, 127>(v)}; }
inline bf16 to_bf16(f16 v) { return to_bf16(to_f32(v)); }
inline bf16 to_bf16(long long v) { return to_bf16(to_odd(v)); }
inline bf16 to_bf16(int v) { return to_bf16(static_cast<double>(v)); }
inline bf16 to_bf16(bool v) { return to_bf16(v ? 1.0f : 0.0f); }
)",
       {"to_f32", "to_odd"}},
      // Floats truncate and saturate; NaN gives 0 (the instruction alone would not, for 64-bit types).
      {"to_i64",
       R"(__device__ inline long long to_i64(long long v) { return v; }
__device__ inline long long to_i64(double v) { return v != v ? 0 : __double2ll_rz(v); }
__device__ inline long long to_i64(float v) { return v != v ? 0 : __float2ll_rz(v); }
__device__ inline long long to_i64(f16 v) { return to_i64(to_f32(v)); }
__device__ inline long long to_i64(bf16 v) { return to_i64(to_f32(v)); }
__device__ inline long long to_i64(int v) { return v; }
__device__ inline long long to_i64(bool v) { return v; }
)",
       R"(inline long long to_i64(long long v) { return v; }
inline long long to_i64(double v) {
  if (v != v) return 0;
  if (v >= 0x1p63) return 0x7fffffffffffffffll;
  return v <= -0x1p63 ? -0x7fffffffffffffffll - 1 : static_cast<long long>(v);
}
inline long long to_i64(float v) { return to_i64(static_cast<double>(v)); }
inline long long to_i64(f16 v) { return to_i64(to_f64(v)); }
inline long long to_i64(bf16 v) { return to_i64(to_f64(v)); }
inline long long to_i64(int v) { return v; }
inline long long to_i64(bool v) { return v; }
)",
       {"to_f32"}},
      {"to_i32",
       R"(__device__ inline int to_i32(int v) { return v; }
__device__ inline int to_i32(double v) { return v != v ? 0 : __double2int_rz(v); }
__device__ inline int to_i32(float v) { return v != v ? 0 : __float2int_rz(v); }
__device__ inline int to_i32(f16 v) { return to_i32(to_f32(v)); }
__device__ inline int to_i32(bf16 v) { return to_i32(to_f32(v)); }
__device__ inline int to_i32(long long v) { return static_cast<int>(v); }
__device__ inline int to_i32(bool v) { return v; }
)",
       R"(inline int to_i32(int v) { return v; }
inline int to_i32(double v) {
  if (v != v) return 0;
  if (v >= 0x1p31) return 0x7fffffff;
  return v <= -0x1p31 ? -0x7fffffff - 1 : static_cast<int>(v);
}
inline int to_i32(float v) { return to_i32(static_cast<double>(v)); }
inline int to_i32(f16 v) { return to_i32(to_f64(v)); }
inline int to_i32(bf16 v) { return to_i32(to_f64(v)); }
inline int to_i32(long long v) { return static_cast<int>(v); }
inline int to_i32(bool v) { return v; }
)",
       {"to_f32"}},
      {"to_i8",
       R"(__device__ inline signed char to_i8(double v) {
  return v != v ? 0 : static_cast<signed char>(fmax(-128.0, fmin(v, 127.0)));
}
__device__ inline signed char to_i8(float v) {
  return v != v ? 0 : static_cast<signed char>(fmaxf(-128.0f, fminf(v, 127.0f)));
}
__device__ inline signed char to_i8(f16 v) { return to_i8(to_f32(v)); }
__device__ inline signed char to_i8(bf16 v) { return to_i8(to_f32(v)); }
__device__ inline signed char to_i8(long long v) { return static_cast<signed char>(v); }
__device__ inline signed char to_i8(int v) { return static_cast<signed char>(v); }
)",
       R"(inline signed char to_i8(double v) {
  return v != v ? 0 : v <= -128 ? -128 : v >= 127 ? 127 : static_cast<signed char>(v);
}
inline signed char to_i8(float v) { return to_i8(static_cast<double>(v)); }
inline signed char to_i8(f16 v) { return to_i8(to_f32(v)); }
inline signed char to_i8(bf16 v) { return to_i8(to_f32(v)); }
inline signed char to_i8(long long v) { return static_cast<signed char>(v); }
inline signed char to_i8(int v) { return static_cast<signed char>(v); }
)",
       {"to_f32"}},
      {"to_u8",
       R"(__device__ inline unsigned char to_u8(double v) {
  return v != v ? 0 : static_cast<unsigned char>(fmax(0.0, fmin(v, 255.0)));
}
__device__ inline unsigned char to_u8(float v) {
  return v != v ? 0 : static_cast<unsigned char>(fmaxf(0.0f, fminf(v, 255.0f)));
}
__device__ inline unsigned char to_u8(f16 v) { return to_u8(to_f32(v)); }
__device__ inline unsigned char to_u8(bf16 v) { return to_u8(to_f32(v)); }
__device__ inline unsigned char to_u8(long long v) { return static_cast<unsigned char>(v); }
__device__ inline unsigned char to_u8(int v) { return static_cast<unsigned char>(v); }
)",
       R"(inline unsigned char to_u8(double v) {
  return v != v ? 0 : v <= 0 ? 0 : v >= 255 ? 255 : static_cast<unsigned char>(v);
}
inline unsigned char to_u8(float v) { return to_u8(static_cast<double>(v)); }
inline unsigned char to_u8(f16 v) { return to_u8(to_f32(v)); }
inline unsigned char to_u8(bf16 v) { return to_u8(to_f32(v)); }
inline unsigned char to_u8(long long v) { return static_cast<unsigned char>(v); }
inline unsigned char to_u8(int v) { return static_cast<unsigned char>(v); }
)",
       {"to_f32"}},
      {"to_bool",
       R"(template <class T>
__device__ inline bool to_bool(T v) { return v != 0; }
__device__ inline bool to_bool(f16 v) { return (v.bits & 0x7fff) != 0; }
__device__ inline bool to_bool(bf16 v) { return (v.bits & 0x7fff) != 0; }
)",
       R"(template <class T> inline bool to_bool(T v) { return v != 0; }
inline bool to_bool(f16 v) { return (v.bits & 0x7fff) != 0; }
inline bool to_bool(bf16 v) { return (v.bits & 0x7fff) != 0; }
)",
       {"f16", "bf16"}},

      // Philox 4x32-10 (Salmon and others, SC 2011): block `block` of four words of a draw.
      {"random_words",
       R"(struct random_block { unsigned w[4]; };
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
       R"(struct random_block { unsigned w[4]; };
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
)",
       {}},
      {"random_uniform_f32",
       R"(__device__ inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  return static_cast<float>(random_words(seed, offset, stream, i >> 2).w[i & 3] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
)",
       R"(inline float random_uniform_f32(long long seed, long long offset, long long stream, long long i) {
  return static_cast<float>(random_words(seed, offset, stream, i >> 2).w[i & 3] >> 8) * 5.9604644775390625e-8f;  // 2^-24
}
)",
       {"random_words"}},
      {"random_uniform_f64",
       R"(__device__ inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  const random_block r = random_words(seed, offset, stream, i >> 1);
  const int at = static_cast<int>(i & 1) * 2;
  const unsigned long long bits = static_cast<unsigned long long>(r.w[at + 1]) << 32 | r.w[at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
)",
       R"(inline double random_uniform_f64(long long seed, long long offset, long long stream, long long i) {
  const random_block r = random_words(seed, offset, stream, i >> 1);
  const int at = static_cast<int>(i & 1) * 2;
  const unsigned long long bits = static_cast<unsigned long long>(r.w[at + 1]) << 32 | r.w[at];
  return static_cast<double>(bits >> 11) * 1.1102230246251565e-16;  // 2^-53
}
)",
       {"random_words"}},

      // Warp exchanges take all 32 lanes. On the host one rendezvous serves a whole butterfly.
      {"warp_barrier",
       R"(__device__ inline void warp_barrier() { __syncwarp(); }
)",
       R"(void warp_barrier(int line = __builtin_LINE()) { exchange(0, "warp_barrier", line); }
)",
       {},
       true},
      {"shuffle_xor",
       R"(template <class T>
__device__ inline T shuffle_xor(T v, int d) { return __shfl_xor_sync(0xffffffffu, v, d); }
)",
       R"(template <class T> T shuffle_xor(T v, int d, int line = __builtin_LINE()) {
  return unpack<T>(exchange(pack(v), "shuffle_xor", line)->value[(threadIdx.x ^ d) & 31]);
}
)",
       {},
       true},
      {"warp_sum",
       R"(template <class T>
__device__ inline T warp_sum(T v) {
  for (int d = 16; d > 0; d >>= 1) v = v + shuffle_xor(v, d);
  return v;
}
)",
       R"(struct plus {
  static constexpr bool keeps_zero = false;
  template <class T> T operator()(T a, T b) const { return a + b; }
};
template <class T> T warp_sum(T v, int line = __builtin_LINE()) { return butterfly(v, plus{}, "warp_sum", line); }
)",
       {"shuffle_xor"},
       true},
      // carry plus the values of the lanes up to this one, by doubling distances; carry becomes the last
      // lane's.
      {"warp_scan_sum",
       R"(template <class T>
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
       R"(template <class T> T warp_scan_sum(T v, T& carry, int line = __builtin_LINE()) {
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
       {},
       true},
      {"warp_prod",
       R"(template <class T>
__device__ inline T warp_prod(T v) {
  for (int d = 16; d > 0; d >>= 1) v = v * shuffle_xor(v, d);
  return v;
}
)",
       R"(struct times {
  static constexpr bool keeps_zero = false;
  template <class T> T operator()(T a, T b) const { return a * b; }
};
template <class T> T warp_prod(T v, int line = __builtin_LINE()) { return butterfly(v, times{}, "warp_prod", line); }
)",
       {"shuffle_xor"},
       true},
      {"warp_max",
       R"(template <class T>
__device__ inline T warp_max(T v) {
  for (int d = 16; d > 0; d >>= 1) v = maximum(v, shuffle_xor(v, d));
  return v;
}
)",
       R"(struct larger {
  static constexpr bool keeps_zero = true;
  template <class T> T operator()(T a, T b) const { return maximum(a, b); }
};
template <class T> T warp_max(T v, int line = __builtin_LINE()) { return butterfly(v, larger{}, "warp_max", line); }
)",
       {"maximum", "shuffle_xor"},
       true},
      {"warp_min",
       R"(template <class T>
__device__ inline T warp_min(T v) {
  for (int d = 16; d > 0; d >>= 1) v = minimum(v, shuffle_xor(v, d));
  return v;
}
)",
       R"(struct smaller {
  static constexpr bool keeps_zero = true;
  template <class T> T operator()(T a, T b) const { return minimum(a, b); }
};
template <class T> T warp_min(T v, int line = __builtin_LINE()) { return butterfly(v, smaller{}, "warp_min", line); }
)",
       {"minimum", "shuffle_xor"},
       true},
  };
}

bool is_member(const Primitive& p) {
  return p.communicates || p.name == "load" || p.name == "store" || p.name == "shared" || p.name == "local" ||
         p.name == "load_vector" || p.name == "store_vector";
}

// Checked mode: pointers carry what they point to, and each access asks the engine first.
std::string_view checked_host(const Primitive& p) {
  if (p.name == "global") {
    return R"(template <class T> struct bare { using type = T; };
template <class T> struct bare<const T> { using type = T; };
template <class T> struct global {
  T* base;
  int object;
  operator global<const T>() const { return {base, object}; }
};
)";
  }
  if (p.name == "load") {
    return R"(template <class T, class I>
typename bare<T>::type load(global<T> p, I i, int line = __builtin_LINE()) {
  call_->check_load(call_->runner, p.object, i, sizeof(T), 1, line);
  return p.base[i];
}
)";
  }
  if (p.name == "load_vector") {
    return R"(template <class T, int n, class U, class I>
void load_vector(local_array<T, n>& to, global<U> p, I i, int line = __builtin_LINE()) {
  call_->check_load(call_->runner, p.object, i, sizeof(T), n, line);
  for (int k = 0; k < n; ++k) to.value[k] = p.base[i + k], to.written[k] = true;
}
)";
  }
  if (p.name == "store_vector") {
    return R"(template <class T, int n, class I>
void store_vector(global<T> p, I i, const local_array<T, n>& from, int line = __builtin_LINE()) {
  for (int k = 0; k < n; ++k) load(from, k, line);
  call_->check_store(call_->runner, p.object, i, sizeof(T), n, line);
  for (int k = 0; k < n; ++k) p.base[i + k] = from.value[k];
}
)";
  }
  if (p.name == "store") {
    return R"(template <class T, class I, class V> void store(global<T> p, I i, V v, int line = __builtin_LINE()) {
  call_->check_store(call_->runner, p.object, i, sizeof(T), 1, line);
  p.base[i] = v;
}
)";
  }
  if (p.name == "local") {
    return R"(#define FUSE_LOCAL(T, n, name) local_array<T, n> name{this->call_, #name, {}, {}}
template <class T, int n> struct local_array {
  const fuse_call* call;
  const char* name;
  T value[n];
  bool written[n];
};
template <class T, int n, class I>
static T load(const local_array<T, n>& a, I i, int line = __builtin_LINE()) {
  if (i < 0 || i >= n || !a.written[i]) a.call->local_fault(a.call->runner, a.name, i, n, 0, line);
  return a.value[i];
}
template <class T, int n, class I, class V>
static void store(local_array<T, n>& a, I i, V v, int line = __builtin_LINE()) {
  if (i < 0 || i >= n) a.call->local_fault(a.call->runner, a.name, i, n, 1, line);
  a.value[i] = v;
  a.written[i] = true;
}
)";
  }
  if (p.name == "grid_barrier") {
    return R"(void grid_barrier(global<int> counter, int line = __builtin_LINE()) {
  call_->grid_barrier(call_->runner, counter.base, line);
}
)";
  }
  if (p.name == "group_barrier") {
    return R"(void group_barrier(global<int> counters, int first, unsigned blocks, int line = __builtin_LINE()) {
  call_->group_barrier(call_->runner, counters.base + first, blocks, line);
}
)";
  }
  if (p.name == "cluster_load") {
    return R"(template <class T, class I, class R>
typename bare<T>::type cluster_load(global<T> p, I i, R rank, int line = __builtin_LINE()) {
  return reinterpret_cast<const T*>(
      call_->peer(call_->runner, reinterpret_cast<const char*>(p.base), i, rank, sizeof(T), line))[i];
}
)";
  }
  if (p.name == "shared") {
    return R"(#define FUSE_SHARED(T, n, name) const global<T> name = shared_array<T>(n, #name, __LINE__)
template <class T> global<T> shared_array(long long n, const char* name, int line) {
  const fuse_array a = call_->shared(call_->runner, sizeof(T), n, name, line);
  return {reinterpret_cast<T*>(a.address), static_cast<int>(~a.number)};
}
)";
  }
  return p.host;
}

// CUDA declares these itself. rsqrt is one division and one root, each rounded.
constexpr std::string_view host_math = R"(
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
static inline float pow(float a, float b) { return powf(a, b); }
static inline float fmod(float a, float b) { return fmodf(a, b); }
static inline double rsqrt(double v) { return 1.0 / sqrt(v); }
static inline float rsqrtf(float v) { return 1.0f / sqrtf(v); }
static inline float rsqrt(float v) { return rsqrtf(v); }
)";

// A sum or product tree is the same in every lane, for both commute; so is a maximum, but for the sign of a
// zero, which each lane then finds for itself.
constexpr std::string_view host_device = R"(struct index3 { unsigned x, y, z; };
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
  if constexpr (F::keeps_zero) {
    if (s->reduced == 2) return own_butterfly<T>(s, combine);
  }
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
  s->reduced = F::keeps_zero && static_cast<T>(0.5) + static_cast<T>(0.5) == 1 && t[0] == 0 ? 2 : 1;
}
template <class T, class F> T own_butterfly(const fuse_slots* s, F combine) {
  T t[32], u[32];
#pragma GCC unroll 1
  for (int i = 0; i < 32; ++i) t[i] = unpack<T>(s->value[i]);
#pragma GCC unroll 1
  for (int d = 16; d > 0; d >>= 1) {
#pragma GCC unroll 1
    for (int i = 0; i < 32; ++i) u[i] = combine(t[i], t[i ^ d]);
    __builtin_memcpy(t, u, sizeof t);
  }
  return t[threadIdx.x & 31];
}
)";

}  // namespace

const std::vector<Primitive>& primitives() {
  static const std::vector<Primitive> table = make_table();
  return table;
}

const Primitive* find_primitive(std::string_view name) {
  if (name == "FUSE_KERNEL") name = "kernel";
  if (name == "FUSE_CLUSTER") name = "cluster_size";
  if (name == "FUSE_SHARED") name = "shared";
  if (name == "FUSE_LOCAL") name = "local";
  // Every word of every kernel is looked up.
  static const std::unordered_map<std::string_view, const Primitive*> by_name = [] {
    std::unordered_map<std::string_view, const Primitive*> result;
    for (const Primitive& primitive : primitives()) result.emplace(primitive.name, &primitive);
    return result;
  }();
  const auto at = by_name.find(name);
  return at == by_name.end() ? nullptr : at->second;
}

std::string cuda_prelude(const std::vector<std::string>& used) {
  const auto& table = primitives();
  std::vector<bool> wanted(table.size());
  const auto want = [&](std::string_view name) {
    if (const Primitive* p = find_primitive(name)) wanted[static_cast<std::size_t>(p - table.data())] = true;
  };
  want("kernel");
  for (const std::string& name : used) want(name);
  // What a row needs stands before it, so one backward sweep closes the set.
  for (std::size_t i = table.size(); i-- > 0;) {
    if (!wanted[i]) continue;
    for (std::string_view name : table[i].needs) want(name);
  }
  const auto has = [&](std::string_view name) {
    return wanted[static_cast<std::size_t>(find_primitive(name) - table.data())];
  };
  const bool across_blocks = has("group_barrier") || has("cluster_barrier");
  std::string text;
  for (std::size_t i = 0; i < table.size(); ++i) {
    const Primitive& p = table[i];
    if (wanted[i]) text += across_blocks && !p.cuda_across_blocks.empty() ? p.cuda_across_blocks : p.cuda;
  }
  return text + "\n";
}

std::string host_prelude(bool checked) {
  std::string text(runtime::emulated::abi_text);
  text += host_math;
  text += "namespace {\n";
  for (const Primitive& p : primitives()) {
    if (!is_member(p)) text += checked ? checked_host(p) : p.host;
  }
  text += host_device;
  for (const Primitive& p : primitives()) {
    if (is_member(p)) text += checked ? checked_host(p) : p.host;
  }
  return text + "};\n}  // namespace\n";
}

}  // namespace fuse::codegen
