// Conversions: one rounding to nearest even from any type.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> conversion_primitives() {
  return {
      // Conversions: one rounding to nearest even from any type.
      {.name = "to_f32",
       .cuda = R"(__device__ inline float to_f32(float v) { return v; }
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
       .host = R"(inline float float_of_bits(unsigned u) { return __builtin_bit_cast(float, u); }
inline unsigned bits_of(float v) { return __builtin_bit_cast(unsigned, v); }
inline unsigned long long bits_of(double v) { return __builtin_bit_cast(unsigned long long, v); }
inline float to_f32(float v) { return v; }
inline float to_f32(double v) {
  float r = static_cast<float>(v);
  // GCC 12 makes vectors of such conversions, and then forgets the rounding where a double is made of it again.
#if defined(__GNUC__) && !defined(__clang__)
  asm("" : "+m"(r));
#endif
  return r;
}
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
       .needs = {"f16", "bf16"}},
      {.name = "to_f64",
       .cuda = R"(__device__ inline double to_f64(double v) { return v; }
__device__ inline double to_f64(float v) { return v; }
__device__ inline double to_f64(f16 v) { return to_f32(v); }
__device__ inline double to_f64(bf16 v) { return to_f32(v); }
__device__ inline double to_f64(long long v) { return __ll2double_rn(v); }
__device__ inline double to_f64(int v) { return v; }
__device__ inline double to_f64(bool v) { return v ? 1.0 : 0.0; }
)",
       .host = R"(inline double to_f64(double v) { return v; }
inline double to_f64(float v) { return v; }
inline double to_f64(f16 v) { return to_f32(v); }
inline double to_f64(bf16 v) { return to_f32(v); }
inline double to_f64(long long v) { return static_cast<double>(v); }
inline double to_f64(int v) { return v; }
inline double to_f64(bool v) { return v ? 1.0 : 0.0; }
)",
       .needs = {"to_f32"}},
      {.name = "to_odd",
       .cuda = R"(// Rounded toward zero with a sticky last bit: rounding this again to 11 or 8 bits is right.
__device__ inline float to_odd(double v) {
  const float f = __double2float_rz(v);
  return f == v ? f : __int_as_float(__float_as_int(f) | 1);
}
__device__ inline float to_odd(long long v) {
  const float f = __ll2float_rz(v);
  return __float2ll_rz(f) == v ? f : __int_as_float(__float_as_int(f) | 1);
}
)",
       .host =
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
)"},
      {.name = "to_f16",
       .cuda = R"(__device__ inline f16 to_f16(f16 v) { return v; }
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
       .host = R"(inline f16 to_f16(f16 v) { return v; }
inline f16 to_f16(double v) { return {round_16<10, 15>(v)}; }
inline f16 to_f16(float v) { return to_f16(static_cast<double>(v)); }
inline f16 to_f16(bf16 v) { return to_f16(to_f64(v)); }
inline f16 to_f16(long long v) { return to_f16(to_odd(v)); }
inline f16 to_f16(int v) { return to_f16(static_cast<double>(v)); }
inline f16 to_f16(bool v) { return to_f16(v ? 1.0 : 0.0); }
)",
       .needs = {"to_f32", "to_odd"}},
      {.name = "to_bf16",
       .cuda = R"(__device__ inline bf16 to_bf16(bf16 v) { return v; }
__device__ inline bf16 to_bf16(float v) {
#if __CUDA_ARCH__ >= 800
  unsigned r;  // the conversion of one alone is an instruction of the slow unit
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(r) : "f"(0.0f), "f"(v));
  return {static_cast<unsigned short>(r)};
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
       .host = R"(inline bf16 to_bf16(bf16 v) { return v; }
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
       .needs = {"to_f32", "to_odd"}},
      // Floats truncate and saturate; NaN gives 0 (the instruction alone would not, for 64-bit types). On the
      // host a test makes 0 of what is below 1: g++ turns a conversion to an integer and back into one
      // truncation, which makes -0 of -0.5.
      {.name = "to_i64",
       .cuda = R"(__device__ inline long long to_i64(long long v) { return v; }
__device__ inline long long to_i64(double v) { return v != v ? 0 : __double2ll_rz(v); }
__device__ inline long long to_i64(float v) { return v != v ? 0 : __float2ll_rz(v); }
__device__ inline long long to_i64(f16 v) { return to_i64(to_f32(v)); }
__device__ inline long long to_i64(bf16 v) { return to_i64(to_f32(v)); }
__device__ inline long long to_i64(int v) { return v; }
__device__ inline long long to_i64(bool v) { return v; }
)",
       .host = R"(inline long long to_i64(long long v) { return v; }
inline long long to_i64(double v) {
  if (!(__builtin_fabs(v) >= 1)) return 0;
  if (v >= 0x1p63) return 0x7fffffffffffffffll;
  return v <= -0x1p63 ? -0x7fffffffffffffffll - 1 : static_cast<long long>(v);
}
inline long long to_i64(float v) { return to_i64(static_cast<double>(v)); }
inline long long to_i64(f16 v) { return to_i64(to_f64(v)); }
inline long long to_i64(bf16 v) { return to_i64(to_f64(v)); }
inline long long to_i64(int v) { return v; }
inline long long to_i64(bool v) { return v; }
)",
       .needs = {"to_f32"}},
      // An index of a gather, or the start of a dynamic slice, which names one of n elements.
      {.name = "clamped_index",
       .cuda = R"(__device__ inline long long clamped_index(long long i, long long n) {
  const long long at = i < n ? i : n - 1;
  return at > 0 ? at : 0;
}
)",
       .host = R"(inline long long clamped_index(long long i, long long n) {
  const long long at = i < n ? i : n - 1;
  return at > 0 ? at : 0;
}
)"},
      {.name = "to_i32",
       .cuda = R"(__device__ inline int to_i32(int v) { return v; }
__device__ inline int to_i32(double v) { return v != v ? 0 : __double2int_rz(v); }
__device__ inline int to_i32(float v) { return v != v ? 0 : __float2int_rz(v); }
__device__ inline int to_i32(f16 v) { return to_i32(to_f32(v)); }
__device__ inline int to_i32(bf16 v) { return to_i32(to_f32(v)); }
__device__ inline int to_i32(long long v) { return static_cast<int>(v); }
__device__ inline int to_i32(bool v) { return v; }
)",
       .host = R"(inline int to_i32(int v) { return v; }
inline int to_i32(double v) {
  if (!(__builtin_fabs(v) >= 1)) return 0;
  if (v >= 0x1p31) return 0x7fffffff;
  return v <= -0x1p31 ? -0x7fffffff - 1 : static_cast<int>(v);
}
inline int to_i32(float v) { return to_i32(static_cast<double>(v)); }
inline int to_i32(f16 v) { return to_i32(to_f64(v)); }
inline int to_i32(bf16 v) { return to_i32(to_f64(v)); }
inline int to_i32(long long v) { return static_cast<int>(v); }
inline int to_i32(bool v) { return v; }
)",
       .needs = {"to_f32"}},
      {.name = "to_i8",
       .cuda = R"(__device__ inline signed char to_i8(double v) {
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
       .host = R"(inline signed char to_i8(double v) {
  return !(__builtin_fabs(v) >= 1) ? 0 : v <= -128 ? -128 : v >= 127 ? 127 : static_cast<signed char>(v);
}
inline signed char to_i8(float v) { return to_i8(static_cast<double>(v)); }
inline signed char to_i8(f16 v) { return to_i8(to_f32(v)); }
inline signed char to_i8(bf16 v) { return to_i8(to_f32(v)); }
inline signed char to_i8(long long v) { return static_cast<signed char>(v); }
inline signed char to_i8(int v) { return static_cast<signed char>(v); }
)",
       .needs = {"to_f32"}},
      {.name = "to_u8",
       .cuda = R"(__device__ inline unsigned char to_u8(double v) {
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
       .host = R"(inline unsigned char to_u8(double v) {
  return v != v ? 0 : v <= 0 ? 0 : v >= 255 ? 255 : static_cast<unsigned char>(v);
}
inline unsigned char to_u8(float v) { return to_u8(static_cast<double>(v)); }
inline unsigned char to_u8(f16 v) { return to_u8(to_f32(v)); }
inline unsigned char to_u8(bf16 v) { return to_u8(to_f32(v)); }
inline unsigned char to_u8(long long v) { return static_cast<unsigned char>(v); }
inline unsigned char to_u8(int v) { return static_cast<unsigned char>(v); }
)",
       .needs = {"to_f32"}},
      {.name = "to_bool",
       .cuda = R"(template <class T>
__device__ inline bool to_bool(T v) { return v != 0; }
__device__ inline bool to_bool(f16 v) { return (v.bits & 0x7fff) != 0; }
__device__ inline bool to_bool(bf16 v) { return (v.bits & 0x7fff) != 0; }
)",
       .host = R"(template <class T> inline bool to_bool(T v) { return v != 0; }
inline bool to_bool(f16 v) { return (v.bits & 0x7fff) != 0; }
inline bool to_bool(bf16 v) { return (v.bits & 0x7fff) != 0; }
)",
       .needs = {"f16", "bf16"}},
  };
}

}  // namespace fuse::codegen
