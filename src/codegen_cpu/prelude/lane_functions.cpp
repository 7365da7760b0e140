// The functions of the op table for 32 lanes, and conversions: vectors, those of f32 by vector_math.cpp. What
// has no vector form here goes lane by lane through the functions of one value, with the same bits.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/prelude/parts.hpp"

namespace fuse::codegen {

const std::string_view cpu_functions = R"(
#define FUSE_F32(name, part)                             \
  FUSE_INLINE vec<float> name(const vec<float>& a) {     \
    vec<float> r;                                        \
    FUSE_EACH_PART r.p[k] = part(a.p[k]);                \
    return r;                                            \
  }
FUSE_F32(expf, part_exp) FUSE_F32(exp2f, part_exp2) FUSE_F32(expm1f, part_expm1) FUSE_F32(logf, part_log)
FUSE_F32(log2f, part_log2) FUSE_F32(log1pf, part_log1p) FUSE_F32(sinf, part_sin) FUSE_F32(cosf, part_cos)
FUSE_F32(hyperbolic_tangent, part_tanh) FUSE_F32(error_function, part_erf) FUSE_F32(sqrtf, part_sqrt)
FUSE_F32(rsqrtf, part_rsqrt) FUSE_F32(floorf, part_floor) FUSE_F32(ceilf, part_ceil) FUSE_F32(rintf, part_rint)
#undef FUSE_F32
#define FUSE_F64(name) \
  FUSE_INLINE vec<double> name(const vec<double>& a) { return by_lane<double>([](double x) { return name(x); }, a); }
FUSE_F64(exp) FUSE_F64(exp2) FUSE_F64(expm1) FUSE_F64(log) FUSE_F64(log2) FUSE_F64(log1p) FUSE_F64(sin) FUSE_F64(cos)
FUSE_F64(hyperbolic_tangent) FUSE_F64(error_function) FUSE_F64(sqrt) FUSE_F64(rsqrt) FUSE_F64(floor) FUSE_F64(ceil)
FUSE_F64(rint)
#undef FUSE_F64
// Functions of two values, with one value for all lanes on either side.
#define FUSE_MIXED(name)                                                                                     \
  template <class T> FUSE_INLINE vec<T> name(const vec<T>& a, given<T> b) { return name(a, all<T>(b)); }     \
  template <class T> FUSE_INLINE vec<T> name(given<T> a, const vec<T>& b) { return name(all<T>(a), b); }
#define FUSE_BY_LANE(name)                                                                         \
  template <class T> FUSE_INLINE vec<T> name(const vec<T>& a, const vec<T>& b) {                   \
    return by_lane<T>([](T x, T y) { return name(x, y); }, a, b);                                  \
  }                                                                                                \
  FUSE_MIXED(name)
FUSE_BY_LANE(remainder) FUSE_BY_LANE(shift_left) FUSE_BY_LANE(shift_right)
FUSE_INLINE vec<float> power(const vec<float>& a, const vec<float>& b) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = part_pow(a.p[k], b.p[k]);
  return r;
}
FUSE_BY_LANE(power)
FUSE_INLINE vec<float> remainder(const vec<float>& a, const vec<float>& b) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = part_fmod(a.p[k], b.p[k]);
  return r;
}
FUSE_INLINE vec<float> atan2f(const vec<float>& a, const vec<float>& b) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = part_atan2(a.p[k], b.p[k]);
  return r;
}
FUSE_INLINE vec<float> atan2f(const vec<float>& a, float b) { return atan2f(a, all(b)); }
FUSE_INLINE vec<float> atan2f(float a, const vec<float>& b) { return atan2f(all(a), b); }
FUSE_INLINE vec<double> atan2(const vec<double>& a, const vec<double>& b) {
  return by_lane<double>([](double x, double y) { return atan2(x, y); }, a, b);
}
FUSE_INLINE vec<double> atan2(const vec<double>& a, double b) { return atan2(a, all(b)); }
FUSE_INLINE vec<double> atan2(double a, const vec<double>& b) { return atan2(all(a), b); }
template <class T> FUSE_INLINE vec<T> divide(const vec<T>& a, const vec<T>& b) {
  return by_lane<T>([](T x, T y) { return divide(x, y); }, a, b);
}
FUSE_INLINE vec<float> divide(const vec<float>& a, const vec<float>& b) { return a / b; }
FUSE_INLINE vec<double> divide(const vec<double>& a, const vec<double>& b) { return a / b; }
FUSE_MIXED(divide)
// Divisions by a value whose reciprocal is known: the bits of IEEE division in three steps and a test. Why they are
// right stands in codegen_cuda/primitives/division.cpp. Here the reciprocal is the float nearest to 1 / b for each b;
// it is NaN outside of [2^-24, 2^24], so that the test fails.
FUSE_INLINE vec<float> divisor_reciprocal(const vec<float>& b) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = choose((b.p[k] >= 0x1p-24f) & (b.p[k] <= 0x1p24f), 1.0f / b.p[k], part_all(__builtin_nanf("")));
  return r;
}
// Whether a quotient is NaN, or the magnitude of a numerator is not 0 and below 2^-101, in either of two parts.
FUSE_INLINE bool may_be_off(f32p a, f32p c, f32p of_a, f32p of_c) {
  const unsigned least = 0x1a000000;  // the bits of 2^-101 without the sign, which * 2 drops
  // What is smaller than `least` wraps to numbers beyond those of all others, of which that of 0 is the least.
  const u32p below_a = (u32p)a * 2 - least, below_c = (u32p)c * 2 - least, zero = 0u - least - u32p{};
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_ucmpd512_mask) && FUSE_HAS(__builtin_ia32_cmpps512_mask)
  return (__builtin_ia32_ucmpd512_mask((i32p)below_a, (i32p)zero, 6, 0xffff) |
          __builtin_ia32_ucmpd512_mask((i32p)below_c, (i32p)zero, 6, 0xffff) |
          __builtin_ia32_cmpps512_mask(of_a, of_c, 3, 0xffff, 4)) != 0;
#else
  return part_any((i32p)((below_a > zero) | (below_c > zero) | (of_a != of_a) | (of_c != of_c)));
#endif
}
FUSE_INLINE vec<float> divide(const vec<float>& a, const vec<float>& b, const vec<float>& r) {
  vec<float> quotient;
  _Pragma("GCC unroll 4") for (int k = 0; k < parts; k += 2) {
    const f32p x = a.p[k], y = a.p[k + 1];
#if FUSE_FUSED
    const f32p of_x = x * r.p[k], of_y = y * r.p[k + 1];
    f32p q = part_fused(part_fused(b.p[k], of_x, -x), -r.p[k], of_x);
    f32p s = part_fused(part_fused(b.p[k + 1], of_y, -y), -r.p[k + 1], of_y);
    if (may_be_off(x, y, q, s)) q = x / b.p[k], s = y / b.p[k + 1];
    quotient.p[k] = q, quotient.p[k + 1] = s;
#else
    quotient.p[k] = x / b.p[k], quotient.p[k + 1] = y / b.p[k + 1];
#endif
  }
  return quotient;
}
// A NaN on either side wins, and +0 is greater than -0: where neither value is greater, the processor's instruction
// takes `a`, and the sign of `b` says which zero it has to be. A loop keeps its state in `a`, which waits for little. Bytes are compared as 16 bits: g++ 12
// makes one masked instruction of a select of a maximum of bytes, and then knows no such instruction.
template <class T> constexpr auto all_but_sign() {
  if constexpr (sizeof(T) == 4) return 0x7fffffff;
  else return 0x7fffffffffffffff;
}
// The greater and the smaller one of two values: the second operand where they are equal, or one is NaN.
template <class P> FUSE_INLINE P part_greater(P x, P y) {
  if constexpr (__is_same(P, f32p)) return part_most(x, y);
  else return choose(x > y, x, y);
}
template <class P> FUSE_INLINE P part_smaller(P x, P y) {
  if constexpr (__is_same(P, f32p)) return part_least(x, y);
  else return choose(x < y, x, y);
}
template <class T> FUSE_INLINE vec<T> maximum(const vec<T>& a, const vec<T>& b) {
  vec<T> r;
  FUSE_EACH_PART {
    if constexpr (__is_same(T, float) || __is_same(T, double)) {
      const part_of<T> x = b.p[k], most = part_greater(x, a.p[k]);
      r.p[k] = (part_of<T>)((test_of<T>)choose(x != x, x, most) & ((test_of<T>)x | all_but_sign<T>()));
    } else if constexpr (sizeof(T) == 1) {
      const i16p x = __builtin_convertvector(a.p[k], i16p), y = __builtin_convertvector(b.p[k], i16p);
      r.p[k] = __builtin_convertvector(y > x ? y : x, part_of<T>);
    } else {
      r.p[k] = choose(b.p[k] > a.p[k], b.p[k], a.p[k]);
    }
  }
  return r;
}
template <class T> FUSE_INLINE vec<T> minimum(const vec<T>& a, const vec<T>& b) {
  vec<T> r;
  FUSE_EACH_PART {
    if constexpr (__is_same(T, float) || __is_same(T, double)) {
      const part_of<T> x = b.p[k], least = part_smaller(x, a.p[k]);
      r.p[k] = (part_of<T>)((test_of<T>)choose(x != x, x, least) | ((test_of<T>)x & ~all_but_sign<T>()));
    } else if constexpr (sizeof(T) == 1) {
      const i16p x = __builtin_convertvector(a.p[k], i16p), y = __builtin_convertvector(b.p[k], i16p);
      r.p[k] = __builtin_convertvector(y < x ? y : x, part_of<T>);
    } else {
      r.p[k] = choose(b.p[k] < a.p[k], b.p[k], a.p[k]);
    }
  }
  return r;
}
FUSE_MIXED(maximum) FUSE_MIXED(minimum)
// A maximum or minimum of many floats, the first of which it begins with. Where there are 32 registers, it keeps three
// integers for each lane: the bits of floats of one sign are ordered as integers. Of floats that have no sign bit the
// greatest has the most signed bits; of the others it has the least unsigned bits; and of all floats the least one has
// the greatest unsigned bits, if one has a sign bit, or else the least. A NaN lies beyond infinity: in the signed bits,
// or in the greatest unsigned ones, if it has a sign bit.
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_pmaxsd512_mask)
#define FUSE_EXTREME(name, a, test, b) __builtin_ia32_##name##512_mask((i32p)(a), (i32p)(b), (i32p)(a), 0xffff)
#elif FUSE_PART_512
#define FUSE_EXTREME(name, a, test, b) choose(a test b, a, b)
#endif
template <bool is_maximum> struct running_extreme {
#ifdef FUSE_EXTREME
  i32p most[parts];
  u32p least[parts], greatest[parts];
  FUSE_METHOD explicit running_extreme(const vec<float>& v) {
    FUSE_EACH_PART most[k] = (i32p)v.p[k], least[k] = greatest[k] = (u32p)v.p[k];
  }
#else
  vec<float> value;
  FUSE_METHOD explicit running_extreme(const vec<float>& v) : value(v) {}
#endif
};
using running_maximum = running_extreme<true>;
using running_minimum = running_extreme<false>;
template <bool is_maximum> FUSE_INLINE void take(running_extreme<is_maximum>& e, const vec<float>& v) {
#ifdef FUSE_EXTREME
  FUSE_EACH_PART {
    const i32p x = (i32p)v.p[k];
    const u32p u = (u32p)v.p[k];
    e.most[k] = FUSE_EXTREME(pmaxsd, x, >, e.most[k]);
    e.least[k] = (u32p)FUSE_EXTREME(pminud, u, <, e.least[k]);
    e.greatest[k] = (u32p)FUSE_EXTREME(pmaxud, u, >, e.greatest[k]);
  }
#else
  e.value = is_maximum ? maximum(e.value, v) : minimum(e.value, v);
#endif
}
template <bool is_maximum> FUSE_INLINE vec<float> value_of(const running_extreme<is_maximum>& e) {
#ifdef FUSE_EXTREME
  vec<float> r;
  FUSE_EACH_PART {
    const i32p bits = is_maximum ? choose(e.most[k] >= 0, e.most[k], (i32p)e.least[k])
                                 : (i32p)choose((i32p)e.greatest[k] < 0, e.greatest[k], e.least[k]);
    const i32p has_nan = (i32p)(e.most[k] > 0x7f800000) | (i32p)(e.greatest[k] > 0xff800000u);
    r.p[k] = (f32p)(bits | has_nan);
  }
  return r;
#else
  return e.value;
#endif
}
#undef FUSE_EXTREME
template <class T> FUSE_INLINE vec<T> absolute(const vec<T>& a) {
  vec<T> r;
  FUSE_EACH_PART {
    if constexpr (__is_same(T, float)) r.p[k] = (f32p)((i32p)a.p[k] & 0x7fffffff);
    else if constexpr (__is_same(T, double)) r.p[k] = (f64p)((i64p)a.p[k] & 0x7fffffffffffffff);
    else r.p[k] = choose(a.p[k] < 0, -a.p[k], a.p[k]);
  }
  return r;
}
template <class T> FUSE_INLINE vec<T> sign(const vec<T>& a) {
  return by_lane<T>([](T x) { return sign(x); }, a);
}
template <class T> FUSE_INLINE vec<bool> is_infinite(const vec<T>& a) {
  if constexpr (__is_same(T, float)) return absolute(a) == infinity_f32();
  else return absolute(a) == infinity_f64();
}
FUSE_INLINE vec<float> random_uniform_f32(long long seed, long long offset, long long stream, long long first, vec<float>*) {
  vec<float> r;
  FUSE_EACH_PART r.p[k] = part_random(seed, offset, stream, first + k * part_lanes);
  return r;
}
template <class I> FUSE_INLINE vec<float> random_uniform_f32(long long seed, long long offset, long long stream, run<I> i) {
  return random_uniform_f32(seed, offset, stream, static_cast<long long>(i.base), static_cast<vec<float>*>(nullptr));
}
template <class I> FUSE_INLINE vec<float> random_uniform_f32(long long seed, long long offset, long long stream, const vec<I>& i) {
  const I first = i.p[0][0];
  if (are_run(i, first)) return random_uniform_f32(seed, offset, stream, run<I>{first});
  return by_lane<float>([=](I element) { return random_uniform_f32(seed, offset, stream, element); }, i);
}
template <class I> FUSE_INLINE vec<double> random_uniform_f64(long long seed, long long offset, long long stream, const vec<I>& i) {
  return by_lane<double>([=](I element) { return random_uniform_f64(seed, offset, stream, element); }, i);
}
template <class I> FUSE_INLINE vec<double> random_uniform_f64(long long seed, long long offset, long long stream, run<I> i) {
  return random_uniform_f64(seed, offset, stream, lanes(i));
}
// Draws whose seeds or offsets differ by lane.
#define FUSE_DRAW_OF_EACH(name, R, draw)                                                                              \
  template <class I>                                                                                                  \
  FUSE_INLINE vec<R> name(const vec<long long>& seed, const vec<long long>& offset, long long stream, const vec<I>& i) { \
    long long s[32], o[32];                                                                                           \
    I at[32];                                                                                                         \
    R r[32];                                                                                                          \
    to_array(seed, s), to_array(offset, o), to_array(i, at);                                                          \
    for (int k = 0; k < 32; ++k) r[k] = draw(s[k], o[k], stream, at[k]);                                              \
    return from_array(r);                                                                                             \
  }
FUSE_DRAW_OF_EACH(random_each_f32, float, random_uniform_f32)
FUSE_DRAW_OF_EACH(random_each_f64, double, random_uniform_f64)
#undef FUSE_DRAW_OF_EACH

// Conversions: one rounding to nearest even from any type.
#define FUSE_CONVERSION(name, R) \
  template <class T> FUSE_INLINE vec<R> name(const vec<T>& a) { return by_lane<R>([](T x) { return name(x); }, a); } \
  FUSE_INLINE vec<R> name(const vec<R>& a) { return a; }
FUSE_CONVERSION(to_f32, float) FUSE_CONVERSION(to_f64, double) FUSE_CONVERSION(to_f16, f16) FUSE_CONVERSION(to_bf16, bf16)
FUSE_CONVERSION(to_i64, long long) FUSE_CONVERSION(to_i32, int) FUSE_CONVERSION(to_i8, signed char)
FUSE_CONVERSION(to_u8, unsigned char) FUSE_CONVERSION(to_bool, bool)
#undef FUSE_CONVERSION
#define FUSE_BY_PART(name, R, T, value)       \
  FUSE_INLINE vec<R> name(const vec<T>& a) {  \
    vec<R> r;                                 \
    FUSE_EACH_PART {                          \
      const part_of<T> x = a.p[k];            \
      r.p[k] = value;                         \
    }                                         \
    return r;                                 \
  }
FUSE_BY_PART(to_f32, float, bf16, x)
FUSE_BY_PART(to_f32, float, f16, part_from_f16(x))
FUSE_BY_PART(to_bf16, bf16, float, part_rounded_to_bf16(x))
FUSE_BY_PART(to_f16, f16, float, part_to_f16(x))
FUSE_BY_PART(to_f32, float, int, __builtin_convertvector(x, f32p))
FUSE_BY_PART(to_f32, float, bool, (f32p)(x & 0x3f800000))
FUSE_BY_PART(to_i32, int, bool, x & 1)
FUSE_BY_PART(to_i64, long long, int, part_as<i64p>(x))
FUSE_BY_PART(to_i32, int, long long, part_as<i32p>(x))
#undef FUSE_BY_PART
// An index as a value of a kernel, and a value as an index inside [0, extent).
template <class R, class I> FUSE_INLINE vec<R> index_value(const I& i) {
  vec<R> r;
  const auto v = lanes(i);
  FUSE_EACH_PART r.p[k] = part_as<part_of<R>>(v.p[k]);
  return r;
}
// An index as a value that is only compared with one value for all lanes: the comparison is with the number of the lane.
template <class R> struct value_run {
  R base;
  bool wraps;  // from the largest value of a narrower type to its least one
};
template <class R, class I> FUSE_INLINE value_run<R> compared_index(run<I> i) {
  return {static_cast<R>(i.base), sizeof(R) < sizeof(I) && static_cast<R>(i.base + 31) < static_cast<R>(i.base)};
}
template <class R> FUSE_INLINE vec<R> lanes(value_run<R> r) {
  vec<R> v;
  FUSE_EACH_PART v.p[k] = part_as<part_of<R>>(lane_numbers(k)) + r.base;
  return v;
}
template <class R, class I> FUSE_INLINE vec<R> compared_index(const vec<I>& i) { return index_value<R>(i); }
// The lane that would have the value: -1 or 32 where none has.
template <class R> FUSE_INLINE int lane_of_value(value_run<R> r, R v) {
  if (v < r.base) return -1;
  const unsigned long long lane = static_cast<unsigned long long>(v) - static_cast<unsigned long long>(r.base);
  return lane > 32 ? 32 : static_cast<int>(lane);
}
#define FUSE_COMPARISON(op, turned)                                                     \
  template <class R> FUSE_INLINE vec<bool> operator op(value_run<R> a, given<R> b) {    \
    if (__builtin_expect(a.wraps, 0)) return lanes(a) op b;                             \
    const int lane = lane_of_value(a, b);                                               \
    vec<bool> r;                                                                        \
    FUSE_EACH_PART r.p[k] = lane_numbers(k) op lane;                                    \
    return r;                                                                           \
  }                                                                                     \
  template <class R> FUSE_INLINE vec<bool> operator turned(given<R> a, value_run<R> b) { return b op a; }
FUSE_COMPARISON(==, ==)
FUSE_COMPARISON(!=, !=)
FUSE_COMPARISON(<, >)
FUSE_COMPARISON(<=, >=)
FUSE_COMPARISON(>, <)
FUSE_COMPARISON(>=, <=)
#undef FUSE_COMPARISON
template <class I, class T> FUSE_INLINE vec<I> clamped_index(const vec<T>& v, I extent) {
  vec<I> r;
  const long long most = static_cast<long long>(extent) - 1;
  FUSE_EACH_PART {
    const i64p x = part_as<i64p>(v.p[k]), below = choose(x < most, x, i64p{} + most);
    r.p[k] = part_as<part_of<I>>(choose(below > 0, below, i64p{}));
  }
  return r;
}
)";

}  // namespace fuse::codegen
