// Arithmetic that C++ and CUDA do not agree on, or do not have.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/primitives/table.hpp"

namespace fuse::codegen {

std::vector<Primitive> arithmetic_primitives() {
  return {
      {.name = "infinity_f32",
       .cuda = R"(__device__ inline float infinity_f32() { return __int_as_float(0x7f800000); }
)",
       .host = R"(inline float infinity_f32() { return __builtin_inff(); }
)"},
      {.name = "infinity_f64",
       .cuda = R"(__device__ inline double infinity_f64() { return __longlong_as_double(0x7ff0000000000000); }
)",
       .host = R"(inline double infinity_f64() { return __builtin_inf(); }
)"},
      {.name = "nan_f32",
       .cuda = R"(__device__ inline float nan_f32() { return __int_as_float(0x7fc00000); }
)",
       .host = R"(inline float nan_f32() { return __builtin_nanf(""); }
)"},
      {.name = "nan_f64",
       .cuda = R"(__device__ inline double nan_f64() { return __longlong_as_double(0x7ff8000000000000); }
)",
       .host = R"(inline double nan_f64() { return __builtin_nan(""); }
)"},
      // A NaN on either side wins, and +0 is greater than -0, as PTX has it. No branch is in the C++ bodies,
      // so that they are vectors in a loop.
      {.name = "maximum",
       .cuda = R"(template <class T>
__device__ inline T maximum(T a, T b) { return b > a ? b : a; }
template <>
__device__ inline float maximum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("max.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? __int_as_float(0x7fffffff) : fmaxf(a, b);
#endif
}
template <>
__device__ inline double maximum(double a, double b) {
  return a != a || b != b ? __longlong_as_double(0x7fffffffffffffff) : fmax(a, b);
}
)",
       .host = R"(template <class T> inline T maximum(T a, T b) { return b > a ? b : a; }
template <> inline float maximum(float a, float b) {
  return (a > b) | (a != a) | ((a == b) & !__builtin_signbit(a)) ? a : b;
}
template <> inline double maximum(double a, double b) {
  return (a > b) | (a != a) | ((a == b) & !__builtin_signbit(a)) ? a : b;
}
)"},
      {.name = "minimum",
       .cuda = R"(template <class T>
__device__ inline T minimum(T a, T b) { return b < a ? b : a; }
template <>
__device__ inline float minimum(float a, float b) {
#if __CUDA_ARCH__ >= 800
  float result;
  asm("min.NaN.f32 %0, %1, %2;" : "=f"(result) : "f"(a), "f"(b));
  return result;
#else
  return a != a || b != b ? __int_as_float(0x7fffffff) : fminf(a, b);
#endif
}
template <>
__device__ inline double minimum(double a, double b) {
  return a != a || b != b ? __longlong_as_double(0x7fffffffffffffff) : fmin(a, b);
}
)",
       .host = R"(template <class T> inline T minimum(T a, T b) { return b < a ? b : a; }
template <> inline float minimum(float a, float b) {
  return (a < b) | (a != a) | ((a == b) & !!__builtin_signbit(a)) ? a : b;
}
template <> inline double minimum(double a, double b) {
  return (a < b) | (a != a) | ((a == b) & !!__builtin_signbit(a)) ? a : b;
}
)"},
      {.name = "divide",
       .cuda = R"(__device__ inline float divide(float a, float b) { return a / b; }
__device__ inline double divide(double a, double b) { return a / b; }
__device__ inline int divide(int a, int b) {
  return b == 0 ? 0 : b == -1 ? static_cast<int>(0u - a) : a / b;
}
__device__ inline long long divide(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? static_cast<long long>(0ull - a) : a / b;
}
)",
       .host = R"(inline float divide(float a, float b) { return a / b; }
inline double divide(double a, double b) { return a / b; }
inline int divide(int a, int b) { return b == 0 ? 0 : b == -1 ? static_cast<int>(0u - a) : a / b; }
inline long long divide(long long a, long long b) {
  return b == 0 ? 0 : b == -1 ? static_cast<long long>(0ull - a) : a / b;
}
)"},
      {.name = "remainder",
       .cuda = R"(#define remainder truncated_remainder  // CUDA's own rounds the quotient to nearest
__device__ inline float remainder(float a, float b) { return fmodf(a, b); }
__device__ inline double remainder(double a, double b) { return fmod(a, b); }
__device__ inline int remainder(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }
__device__ inline long long remainder(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
)",
       .host = R"(#define remainder truncated_remainder
inline float remainder(float a, float b) { return fmodf(a, b); }
inline double remainder(double a, double b) { return fmod(a, b); }
inline int remainder(int a, int b) { return b == 0 || b == -1 ? 0 : a % b; }
inline long long remainder(long long a, long long b) { return b == 0 || b == -1 ? 0 : a % b; }
)"},
      {.name = "absolute",
       .cuda = R"(__device__ inline float absolute(float a) { return fabsf(a); }
__device__ inline double absolute(double a) { return fabs(a); }
__device__ inline int absolute(int a) { return a < 0 ? static_cast<int>(0u - a) : a; }
__device__ inline long long absolute(long long a) { return a < 0 ? static_cast<long long>(0ull - a) : a; }
)",
       .host = R"(inline float absolute(float a) { return fabsf(a); }
inline double absolute(double a) { return fabs(a); }
inline int absolute(int a) { return a < 0 ? static_cast<int>(0u - a) : a; }
inline long long absolute(long long a) { return a < 0 ? static_cast<long long>(0ull - a) : a; }
)"},
      // Index arithmetic: b is not 0.
      {.name = "floor_div",
       .cuda = R"(template <class A, class B>
__device__ inline A floor_div(A a, B b) { return static_cast<A>(a / b - (a % b != 0 && (a % b < 0) != (b < 0))); }
)",
       .host =
           R"(template <class A, class B> inline A floor_div(A a, B b) { return static_cast<A>(a / b - (a % b != 0 && (a % b < 0) != (b < 0))); }
)"},
      {.name = "floor_mod",
       .cuda = R"(template <class A, class B>
__device__ inline A floor_mod(A a, B b) { return static_cast<A>(a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0)); }
)",
       .host =
           R"(template <class A, class B> inline A floor_mod(A a, B b) { return static_cast<A>(a % b + (a % b != 0 && (a % b < 0) != (b < 0) ? b : 0)); }
)"},
      {.name = "is_infinite",
       .cuda = R"(__device__ inline bool is_infinite(float a) { return fabsf(a) == infinity_f32(); }
__device__ inline bool is_infinite(double a) { return fabs(a) == infinity_f64(); }
)",
       .host = R"(inline bool is_infinite(float a) { return fabsf(a) == infinity_f32(); }
inline bool is_infinite(double a) { return fabs(a) == infinity_f64(); }
)",
       .needs = {"infinity_f32", "infinity_f64"}},
      // C++ leaves shifts by a negative number or by the width open.
      {.name = "shift_left",
       .cuda = R"(template <class T>
__device__ inline T shift_left(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? 0 : static_cast<T>(static_cast<unsigned long long>(a) << b);
}
)",
       .host = R"(template <class T>
inline T shift_left(T a, T b) {
  return b < 0 || b >= static_cast<T>(8 * sizeof(T)) ? 0 : static_cast<T>(static_cast<unsigned long long>(a) << b);
}
)"},
      {.name = "shift_right",
       .cuda = R"(template <class T>
__device__ inline T shift_right(T a, T b) {
  const T width = 8 * sizeof(T);
  return b >= 0 && b < width ? static_cast<T>(a >> b) : a < 0 ? static_cast<T>(-1) : 0;
}
)",
       .host = R"(template <class T>
inline T shift_right(T a, T b) {
  const T width = 8 * sizeof(T);
  return b >= 0 && b < width ? static_cast<T>(a >> b) : a < 0 ? static_cast<T>(-1) : 0;
}
)"},
      {.name = "sign",
       .cuda = R"(template <class T>
__device__ inline T sign(T a) { return a != a ? a : static_cast<T>((a > 0) - (a < 0)); }
)",
       .host =
           R"(template <class T> inline T sign(T a) { return a != a ? a : static_cast<T>((a > 0) - (a < 0)); }
)"},
      {.name = "power",
       .cuda = R"(template <class U, class T>
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
       .host = R"(template <class U, class T> inline T integer_power(T base, T exponent) {
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
)"},
  };
}

}  // namespace fuse::codegen
