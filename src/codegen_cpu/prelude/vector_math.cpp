// Vector functions of CPU kernels, within the op table's bounds on processors with and without fused
// multiplication and addition. tests/proofs_cpu/ shows the errors of all floats.
// SPDX-License-Identifier: Apache-2.0
#include "codegen_cpu/prelude/vector_math.hpp"

namespace fuse::codegen {

// The polynomials are minimax fits by the Remez exchange algorithm in 40 decimal digits, on a grid of
// Chebyshev points. What is made least is the relative error of the whole function, but the absolute one of
// the logarithm in pow. The coefficients are rounded at the end.
//
// The text includes no header: the intrinsic functions of x86 take longer to read than most kernels to build.
// Loops over copies of a part become one instruction each. Built-in functions of the compiler are called
// where no loop does, and only where it has them.

const std::string_view cpu_math =
    // Operations of the processor.
    R"(#define FUSE_PART static inline __attribute__((always_inline))
#if FUSE_VECTOR_BYTES == 64 && defined(__AVX512F__) && defined(__AVX512DQ__)
#define FUSE_PART_512 1
#else
#define FUSE_PART_512 0
#endif
#if FUSE_VECTOR_BYTES == 32 && defined(__AVX2__)
#define FUSE_PART_256 1
#else
#define FUSE_PART_256 0
#endif
#if FUSE_VECTOR_BYTES == 16 && defined(__SSE2__)
#define FUSE_PART_128 1
#else
#define FUSE_PART_128 0
#endif
#ifdef __has_builtin
#define FUSE_HAS(name) __has_builtin(name)
#else
#define FUSE_HAS(name) 0
#endif
#if defined(__FMA__) || defined(__ARM_FEATURE_FMA)
#define FUSE_FUSED 1
#else
#define FUSE_FUSED 0
#endif
typedef unsigned short u16p __attribute__((vector_size(FUSE_VECTOR_BYTES / 2)));
typedef short i16_part __attribute__((vector_size(FUSE_VECTOR_BYTES / 2)));
typedef float f32_half_part __attribute__((vector_size(FUSE_VECTOR_BYTES / 2)));
typedef double f64_part __attribute__((vector_size(FUSE_VECTOR_BYTES)));
typedef unsigned long long u64_part __attribute__((vector_size(FUSE_VECTOR_BYTES)));

FUSE_PART f32p part_all(float a) { return a - f32p{}; }
#define FUSE_PART_LOOP(name, function)                         \
  FUSE_PART f32p name(f32p a) {                                \
    alignas(FUSE_VECTOR_BYTES) float x[part_lanes];            \
    __builtin_memcpy(x, &a, sizeof a);                         \
    for (int i = 0; i < part_lanes; ++i) x[i] = function(x[i]); \
    __builtin_memcpy(&a, x, sizeof a);                         \
    return a;                                                  \
  }
FUSE_PART_LOOP(part_sqrt, __builtin_sqrtf)
FUSE_PART_LOOP(part_floor, __builtin_floorf)
FUSE_PART_LOOP(part_ceil, __builtin_ceilf)
FUSE_PART_LOOP(part_rint, __builtin_rintf)
FUSE_PART f32p part_rsqrt(f32p x) { return 1.0f / part_sqrt(x); }
FUSE_PART f32p part_fused(f32p a, f32p b, f32p c) {
#if !FUSE_FUSED
  return a * b + c;
#elif FUSE_PART_512 && FUSE_HAS(__builtin_ia32_vfmaddps512_mask)
  return __builtin_ia32_vfmaddps512_mask(a, b, c, 0xffff, 4);
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_vfmaddps256)
  return __builtin_ia32_vfmaddps256(a, b, c);
#else
  alignas(FUSE_VECTOR_BYTES) float x[part_lanes], y[part_lanes], z[part_lanes];
  __builtin_memcpy(x, &a, sizeof a);
  __builtin_memcpy(y, &b, sizeof b);
  __builtin_memcpy(z, &c, sizeof c);
  for (int i = 0; i < part_lanes; ++i) x[i] = __builtin_fmaf(x[i], y[i], z[i]);
  __builtin_memcpy(&a, x, sizeof a);
  return a;
#endif
}
FUSE_PART f32p part_fused(f32p a, f32p b, float c) { return part_fused(a, b, part_all(c)); }
FUSE_PART f32p part_fused(f32p a, float b, f32p c) { return part_fused(a, part_all(b), c); }
FUSE_PART bool part_any(i32p mask) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_cvtd2mask512)
  return __builtin_ia32_cvtd2mask512(mask) != 0;
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_movmskps256)
  return __builtin_ia32_movmskps256((f32p)mask) != 0;
#elif FUSE_PART_128 && FUSE_HAS(__builtin_ia32_movmskps)
  return __builtin_ia32_movmskps((f32p)mask) != 0;
#else
  int any = 0;
  for (int i = 0; i < part_lanes; ++i) any |= mask[i];
  return any != 0;
#endif
}
FUSE_PART f32p part_absolute(f32p a) { return (f32p)((i32p)a & 0x7fffffff); }
FUSE_PART f32p part_copy_sign(f32p a, f32p sign) {
  return (f32p)((((i32p)a ^ (i32p)sign) & 0x7fffffff) ^ (i32p)sign);
}
// The second operand where either is NaN.
FUSE_PART f32p part_least(f32p a, f32p b) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_minps512_mask)
  return __builtin_ia32_minps512_mask(a, b, a, 0xffff, 4);
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_minps256)
  return __builtin_ia32_minps256(a, b);
#elif FUSE_PART_128 && FUSE_HAS(__builtin_ia32_minps)
  return __builtin_ia32_minps(a, b);
#else
  return a < b ? a : b;
#endif
}
FUSE_PART f32p part_most(f32p a, f32p b) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_maxps512_mask)
  return __builtin_ia32_maxps512_mask(a, b, a, 0xffff, 4);
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_maxps256)
  return __builtin_ia32_maxps256(a, b);
#elif FUSE_PART_128 && FUSE_HAS(__builtin_ia32_maxps)
  return __builtin_ia32_maxps(a, b);
#else
  return a > b ? a : b;
#endif
}
// a 2^n, rounded once; n is whole and at most 250 away from 0, and the magnitude of a is near 1.
FUSE_PART f32p part_scale(f32p a, f32p n) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_scalefps512_mask)
  return __builtin_ia32_scalefps512_mask(a, n, a, 0xffff, 4);
#else
  const i32p whole = __builtin_convertvector(n, i32p), half = whole >> 1;
  return a * (f32p)((half + 127) << 23) * (f32p)((whole - half + 127) << 23);
#endif
}
// Element at[i] of 16, in lane i.
FUSE_PART f32p part_pick(const float* table, i32p at) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_permvarsf512)
  f32p row;
  __builtin_memcpy(&row, table, sizeof row);
  return __builtin_ia32_permvarsf512(row, at);
#elif FUSE_PART_512 && FUSE_HAS(__builtin_ia32_permvarsf512_mask)
  f32p row;
  __builtin_memcpy(&row, table, sizeof row);
  return __builtin_ia32_permvarsf512_mask(row, at, row, 0xffff);
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_permvarsf256)
  f32p low, high;
  __builtin_memcpy(&low, table, sizeof low);
  __builtin_memcpy(&high, table + 8, sizeof high);
  return at > 7 ? __builtin_ia32_permvarsf256(high, at) : __builtin_ia32_permvarsf256(low, at);
#else
  f32p picked;
  for (int i = 0; i < part_lanes; ++i) picked[i] = table[at[i] & 15];
  return picked;
#endif
}
)"
    // Exponential functions: x = n ln 2 + r with a whole n, and 1 + r + r^2 P(r) times 2^n. The bounds are
    // the first operand of what selects them, so that a NaN passes. Below the lower one the result is 0,
    // above the upper infinity.
    R"(
struct part_reduced { f32p n, r; };
FUSE_PART part_reduced part_reduce_exp(f32p x) {
  const f32p n = part_rint(x * 1.44269502f);
  const f32p r = part_fused(n, -0.693145752f, x);  // exact: 15 bits of ln 2
  return {n, part_fused(n, -1.42860677e-6f, r)};
}
FUSE_PART f32p part_expm1_near_0(f32p r) {  // exp(r) - 1
  f32p p = part_fused(r, 0.00138824142f, part_all(0.00836717896f));
  p = part_fused(p, r, 0.0416672193f);
  p = part_fused(p, r, 0.16666539f);
  p = part_fused(p, r, 0.49999997f);
  return part_fused(p, r * r, r);
}
FUSE_PART f32p part_exp(f32p x) {
  x = part_least(part_all(89.0f), part_most(part_all(-104.0f), x));
  const part_reduced d = part_reduce_exp(x);
  return part_scale(part_expm1_near_0(d.r) + 1.0f, d.n);
}
FUSE_PART f32p part_exp2(f32p x) {
  x = part_least(part_all(129.0f), part_most(part_all(-151.0f), x));
  const f32p n = part_rint(x), r = x - n;
  f32p p = part_fused(r, 0.000153533809f, part_all(0.00133988762f));
  p = part_fused(p, r, 0.00961843692f);
  p = part_fused(p, r, 0.0555033237f);
  p = part_fused(p, r, 0.240226477f);
  p = part_fused(p, r, 0.693147182f);
  return part_scale(part_fused(p, r, 1.0f), n);
}
// 2^n (exp(r) - 1) + (2^n - 1), computed of halves since 2^128 is infinite. Below 2^-25 the result is x, which
// keeps the bit that halving would take from a subnormal, and the sign of a zero.
FUSE_PART f32p part_expm1(f32p x) {
  const part_reduced d = part_reduce_exp(part_least(part_all(89.0f), part_most(part_all(-18.0f), x)));
  const f32p half = (f32p)((__builtin_convertvector(d.n, i32p) + 126) << 23);
  const f32p result = part_fused(part_expm1_near_0(d.r), half, half - 0.5f) * 2.0f;
  return part_absolute(x) < 0x1p-25f ? x : result;
}
)"
    // Logarithms: x = 2^k (1 + f), where 1 + f lies between the square roots of 1/2 and 2. One test of the
    // whole part finds whether any x is not a positive normal number.
    R"(
// Whether x is zero, negative, subnormal, infinite or NaN.
FUSE_PART i32p part_unusual(f32p x) { return (i32p)((u32p)x + 0x7f800000u) >= -0x1000000; }
FUSE_PART i32p part_exponent(f32p x) { return (i32p)((u32p)x - 0x3f3504f3u) >> 23; }
FUSE_PART f32p part_times_power(f32p x, i32p k) { return (f32p)((u32p)x + ((u32p)k << 23)); }
struct part_factors { f32p k, f; };
FUSE_PART part_factors part_split(f32p x, bool unusual) {
  f32p more = {};
  if (unusual) {
    more = x < 0x1p-126f ? part_all(-23.0f) : more;
    x = x < 0x1p-126f ? x * 0x1p23f : x;
  }
  const i32p k = part_exponent(x);
  return {__builtin_convertvector(k, f32p) + more, part_times_power(x, -k) - 1.0f};
}
// The logarithm in a part of which a lane is unusual.
FUSE_PART f32p part_log_unusual(f32p x, f32p result) {
  result = x < __builtin_inff() ? result : x;
  result = x == 0.0f ? part_all(-__builtin_inff()) : result;
  return x < 0.0f ? part_all(__builtin_nanf("")) : result;
}
FUSE_PART f32p part_log_of(f32p k, f32p f) {  // k ln 2 + log(1 + f)
  f32p q = part_fused(f, -0.0762179196f, part_all(0.129044294f));
  q = part_fused(q, f, -0.132429793f);
  q = part_fused(q, f, 0.14181824f);
  q = part_fused(q, f, -0.166090831f);
  q = part_fused(q, f, 0.200019747f);
  q = part_fused(q, f, -0.250015825f);
  q = part_fused(q, f, 0.333333254f);
  q = part_fused(q, f, -0.499999881f);
  q = part_fused(q, f * f, k * 1.42860677e-6f);
  return part_fused(k, 0.693145752f, q + f);
}
FUSE_PART f32p part_log(f32p x) {
  const bool unusual = __builtin_expect(part_any(part_unusual(x)), 0);
  const part_factors d = part_split(x, unusual);
  const f32p result = part_log_of(d.k, d.f);
  return unusual ? part_log_unusual(x, result) : result;
}
FUSE_PART f32p part_log2(f32p x) {
  const bool unusual = __builtin_expect(part_any(part_unusual(x)), 0);
  const part_factors d = part_split(x, unusual);
  f32p p = part_fused(d.f, -0.109949775f, part_all(0.186175317f));
  p = part_fused(p, d.f, -0.191062853f);
  p = part_fused(p, d.f, 0.204600558f);
  p = part_fused(p, d.f, -0.239617378f);
  p = part_fused(p, d.f, 0.288567424f);
  p = part_fused(p, d.f, -0.360696644f);
  p = part_fused(p, d.f, 0.480898231f);
  p = part_fused(p, d.f, -0.721347332f);
  p = part_fused(p, d.f, 1.44269502f);
  const f32p result = part_fused(p, d.f, d.k);
  return unusual ? part_log_unusual(x, result) : result;
}
// The power of two is found from 1 + x as rounded, but f = x 2^-k + (2^-k - 1) is rounded once from x itself.
FUSE_PART f32p part_log1p(f32p x) {
  const bool unusual = __builtin_expect(part_any(part_unusual(x + 1.0f) | (x > 0x1p100f)), 0);
  f32p small = x, one = part_all(1.0f), more = {};
  if (unusual) {  // 1 + x is x above 2^100, so that x 2^-64 has the same logarithm but for 64 ln 2
    small = x > 0x1p100f ? x * 0x1p-64f : x;
    more = x > 0x1p100f ? part_all(64.0f) : more;
  }
  const i32p k = part_exponent(small + one);
  const f32p f = part_times_power(small, -k) + (part_times_power(one, -k) - 1.0f);
  f32p result = part_copy_sign(part_log_of(__builtin_convertvector(k, f32p) + more, f), x);
  if (unusual) {
    result = x < __builtin_inff() ? result : x;
    result = x == -1.0f ? part_all(-__builtin_inff()) : result;
    result = x < -1.0f ? part_all(__builtin_nanf("")) : result;
  }
  return result;
}
)"
    // Sine and cosine: x = q pi/2 + r with a whole q. Fused, three parts of pi/2 are enough for all x below
    // 2^17: the first difference is exact. Unfused, the products of q and the first three parts are exact,
    // and what the last difference loses is kept. All parts are positive, so that r is -0 where x is.
    R"(
// The results of libm where the magnitude is not within the bound.
static __attribute__((noinline, cold)) f32p part_far(f32p x, f32p result, float bound,
                                                     float (*function)(float)) {
  for (int i = 0; i < part_lanes; ++i) {
    if (!(__builtin_fabsf(x[i]) <= bound)) result[i] = function(x[i]);
  }
  return result;
}
FUSE_PART f32p part_wave(f32p x, int quarters, float (*function)(float)) {
  const f32p turned = part_fused(x, 0.636619747f, part_all(0x1.8p23f));  // the sum's last bits are those of q
  const f32p q = turned - 0x1.8p23f;
#if FUSE_FUSED
  constexpr float bound = 0x1p17f;
  f32p r = part_fused(q, -1.57079625f, x);
  r = part_fused(q, -7.54978942e-8f, r);
  r = part_fused(q, -5.39030295e-15f, r);
#else
  constexpr float bound = 1024.0f;
  const f32p high = x - q * 1.57055664f - q * 0.000239670277f, third = q * 1.58906914e-8f;
  const f32p r = high - third, lost = high - r - third - q * 2.56334407e-12f;
#endif
  const f32p z = r * r;
  f32p s = part_fused(z, -0.000195030749f, part_all(0.00833207089f));
  s = part_fused(s, z, -0.166666538f);
  f32p c = part_fused(z, 2.44192452e-5f, part_all(-0.00138871942f));
  c = part_fused(c, z, 0.0416666418f);
  c = part_fused(c, z, -0.5f);
#if FUSE_FUSED
  s = part_fused(s, z * r, r);
  c = part_fused(c, z, 1.0f);
#else
  s = s * (z * r) + lost + r;
  c = c * z - lost * r + 1.0f;
#endif
  s = part_copy_sign(s, r);
  const i32p turn = (i32p)turned + quarters;
  const f32p result = (f32p)((i32p)((turn & 1) == 0 ? s : c) ^ ((turn & 2) << 30));
  if (__builtin_expect(part_any(!(part_absolute(x) <= bound)), 0)) return part_far(x, result, bound, function);
  return result;
}
FUSE_PART f32p part_sin(f32p x) { return part_wave(x, 0, sinf); }
FUSE_PART f32p part_cos(f32p x) { return part_wave(x, 1, cosf); }
)"
    // tanh and erf: a look-up is one instruction with AVX-512 and three with AVX2. There are up to 16
    // intervals cut by exponent and leading bits of the significand, one polynomial of degree 6 each, in
    // powers of the distance from a float near the middle of the interval: among 401 of them the one whose
    // function value is nearest to a float, so that the first coefficient has almost no error. The first
    // interval has a polynomial of degree 5 for f(x) / x. Rows: the middles, then the coefficients of powers
    // 0 to 6. No magnitude reaches beyond row 15.
    R"(
alignas(64) static const float part_tanh_table[8][16] = {
    {0.0f, 0.156249285f, 0.218747765f, 0.312504888f, 0.43750307f, 0.624988437f, 0.874995232f, 1.25002086f,
     1.74999332f, 2.49995923f, 3.49998045f, 5.00009537f, 6.99990463f, 8.55019093f, 8.55019093f,
     8.55019093f},
    {0.0f, 0.154990032f, 0.215324208f, 0.302714169f, 0.411572605f, 0.554591715f, 0.703903198f, 0.84828949f,
     0.941374779f, 0.986613214f, 0.998177826f, 0.999909222f, 0.999998331f, 0.99999994f, 0.99999994f,
     0.99999994f},
    {1.0f, 0.975978076f, 0.953635514f, 0.908364117f, 0.83060801f, 0.692428052f, 0.504520297f, 0.280404836f,
     0.113813475f, 0.02659446f, 0.00364109501f, 0.000181802054f, 3.33142339e-6f, 1.49787226e-7f,
     1.49787226e-7f, 1.49787226e-7f},
    {-5.54915367e-8f, -0.151266873f, -0.205340803f, -0.274974704f, -0.341855496f, -0.384014875f,
     -0.355133474f, -0.237864569f, -0.107141107f, -0.0262381509f, -0.00363443652f, -0.000181725336f,
     -3.33031107e-6f, -1.49785919e-7f, -1.49785919e-7f, -1.49785919e-7f},
    {-0.333328128f, -0.301881135f, -0.27366364f, -0.219549313f, -0.136171266f, -0.0178440288f,
     0.0818038434f, 0.108324997f, 0.0629287213f, 0.0170189478f, 0.00241185818f, 0.00011887664f,
     2.17862907e-6f, 9.97009977e-8f, 9.97009977e-8f, 9.97009977e-8f},
    {-0.000178195143f, 0.0972106829f, 0.127373233f, 0.158118397f, 0.169996157f, 0.13790521f, 0.0607991479f,
     -0.0125878286f, -0.0235253386f, -0.00805233698f, -0.00119737932f, -5.95465608e-5f, -1.09166626e-6f,
     -4.98587021e-8f, -4.98587021e-8f, -4.98587021e-8f},
    {0.136099488f, 0.107187383f, 0.0849487484f, 0.0455041826f, -0.00596370455f, -0.054341875f,
     -0.0585512035f, -0.0196879767f, 0.00348380394f, 0.00288702571f, 0.00049028435f, 2.84214639e-5f,
     5.21941729e-7f, 2.09919744e-8f, 2.09919744e-8f, 2.09919744e-8f},
    {-0.0198622011f, -0.0522292182f, -0.0652125105f, -0.0723722279f, -0.0616908856f, -0.0243375506f,
     0.01286761f, 0.0151034985f, 0.00210561743f, -0.000696300936f, -0.000157689909f, -9.37907953e-6f,
     -1.72548638e-7f, -6.98210423e-9f, -6.98210423e-9f, -6.98210423e-9f},
};
alignas(64) static const float part_erf_table[8][16] = {
    {0.0f, 0.343748271f, 0.406252801f, 0.468744397f, 0.56251049f, 0.687510431f, 0.812502265f, 0.937494397f,
     1.12501156f, 1.37498736f, 1.62498307f, 1.87501872f, 2.25004435f, 2.75001574f, 3.25004768f,
     3.74995232f},
    {0.0f, 0.37312746f, 0.434389591f, 0.492608398f, 0.573683083f, 0.669092f, 0.749465346f, 0.815099776f,
     0.888391912f, 0.94816792f, 0.978442371f, 0.991990685f, 0.9985376f, 0.999899387f, 0.999995708f,
     0.999999881f},
    {1.12837923f, 1.00262284f, 0.956706047f, 0.905797899f, 0.82231164f, 0.70335865f, 0.583110988f,
     0.46854952f, 0.318265676f, 0.170365691f, 0.0804766864f, 0.0335434712f, 0.00714087719f, 0.000586243288f,
     2.91843789e-5f, 8.82173083e-7f},
    {-2.48225501e-6f, -0.344649851f, -0.388664514f, -0.424587697f, -0.462558925f, -0.483566403f,
     -0.473779023f, -0.439262539f, -0.358052582f, -0.23425068f, -0.130773246f, -0.0628946424f,
     -0.0160672534f, -0.00161213847f, -9.48426677e-5f, -3.30737294e-6f},
    {-0.37603277f, -0.255225718f, -0.213637978f, -0.169250563f, -0.100641184f, -0.0128151383f,
     0.0622604266f, 0.118354045f, 0.16245161f, 0.157939523f, 0.114845298f, 0.067438975f, 0.0217234623f,
     0.00275801495f, 0.000195175817f, 7.91581806e-6f},
    {-0.00129444746f, 0.158749953f, 0.172950327f, 0.181196839f, 0.182492077f, 0.165594071f, 0.132633016f,
     0.0909427851f, 0.0279725324f, -0.0304971859f, -0.0497185327f, -0.042259369f, -0.0190868266f,
     -0.00325740688f, -0.000286006893f, -1.37788265e-5f},
    {0.120972656f, 0.0547256991f, 0.0359822921f, 0.0168059692f, -0.0108005088f, -0.0415806882f,
     -0.0616543517f, -0.0694920942f, -0.0610619187f, -0.0306447968f, -0.00230469555f, 0.0113288052f,
     0.0105819134f, 0.00282552862f, 0.000332412281f, 2.01946204e-5f},
    {-0.0238219183f, -0.048571799f, -0.0509667359f, -0.0509237945f, -0.0465791598f, -0.0345964953f,
     -0.0186608732f, -0.00254540332f, 0.0153057557f, 0.0220185332f, 0.0143983131f, 0.00415513199f,
     -0.00276815635f, -0.00166883611f, -0.00027476775f, -2.08314159e-5f},
};
FUSE_PART f32p part_piecewise(f32p x, const float (&table)[8][16], float first, float top, int bits) {
  const f32p t = part_least(part_all(top), part_absolute(x));
  i32p at = (i32p)(((u32p)t - (u32p)part_all(first))) >> (23 - bits);
  at = (at > -1 ? at : -1) + 1;
  const f32p u = t - part_pick(table[0], at);
  f32p p = part_fused(u, part_pick(table[7], at), part_pick(table[6], at));
  p = part_fused(p, u, part_pick(table[5], at));
  p = part_fused(p, u, part_pick(table[4], at));
  p = part_fused(p, u, part_pick(table[3], at));
  p = part_fused(p, u, part_pick(table[2], at));
  p = part_fused(p, u, part_pick(table[1], at));
  return part_copy_sign(p, x);
}
FUSE_PART f32p part_tanh(f32p x) { return part_piecewise(x, part_tanh_table, 0.125f, 9.1f, 1); }
FUSE_PART f32p part_erf(f32p x) { return part_piecewise(x, part_erf_table, 0.3125f, 0x1.fffffep1f, 2); }
)"
    // x^y = 2^(y log2 |x|), all in doubles: a float's log2 would have to be right to 31 bits. The two halves
    // of a part are computed one after the other.
    R"(
FUSE_PART f64_part part_fused(f64_part a, f64_part b, double c) {
#if FUSE_FUSED && FUSE_PART_512 && FUSE_HAS(__builtin_ia32_vfmaddpd512_mask)
  return __builtin_ia32_vfmaddpd512_mask(a, b, c - f64_part{}, 0xff, 4);
#elif FUSE_FUSED && FUSE_PART_256 && FUSE_HAS(__builtin_ia32_vfmaddpd256)
  return __builtin_ia32_vfmaddpd256(a, b, c - f64_part{});
#else
  return a * b + c;
#endif
}
// 2^(y (k + log2(1 + f)))
FUSE_PART f32_half_part part_power_half(f32_half_part k, f32_half_part f, f32_half_part y) {
  const f64_part g = __builtin_convertvector(f, f64_part);
  f64_part p = part_fused(g, -0.088758723162542408 - f64_part{}, 0.15646616293550045);
  p = part_fused(p, g, -0.15664024096964152);
  p = part_fused(p, g, 0.15863767606301399);
  p = part_fused(p, g, -0.17905172357318436);
  p = part_fused(p, g, 0.20612565022974214);
  p = part_fused(p, g, -0.24050514382626628);
  p = part_fused(p, g, 0.28853964965327683);
  p = part_fused(p, g, -0.36067276452715913);
  p = part_fused(p, g, 0.48089833281942446);
  p = part_fused(p, g, -0.72134752546795977);
  p = part_fused(p, g, 1.4426950409152286);
  f64_part t = (p * g + __builtin_convertvector(k, f64_part)) * __builtin_convertvector(y, f64_part);
  const f64_part bound = 160.0 - f64_part{};
  t = -bound > t ? -bound : t;
  t = bound < t ? bound : t;
  const f64_part turned = t + 0x1.8p52;  // the sum's last bits are those of the nearest whole number
  const f64_part r = t - (turned - 0x1.8p52);
  p = part_fused(r, 0.00015345854823256162 - f64_part{}, 0.0013399932033602003);
  p = part_fused(p, r, 0.0096184887802563193);
  p = part_fused(p, r, 0.055503287743417486);
  p = part_fused(p, r, 0.24022646892808713);
  p = part_fused(p, r, 0.69314720573817123);
  p = part_fused(p, r, 1.0000000005530882);
  return __builtin_convertvector((f64_part)((u64_part)p + ((u64_part)turned << 52)), f32_half_part);
}
FUSE_PART f32p part_pow(f32p x, f32p y) {
  const f32p base = part_absolute(x);
  const bool unusual = __builtin_expect(part_any(part_unusual(x) | !(part_absolute(y) < __builtin_inff())), 0);
  const part_factors d = part_split(base, unusual);
  f32_half_part k[2], f[2], exponent[2];
  __builtin_memcpy(k, &d.k, sizeof k);
  __builtin_memcpy(f, &d.f, sizeof f);
  __builtin_memcpy(exponent, &y, sizeof exponent);
  const f32_half_part halves[2] = {part_power_half(k[0], f[0], exponent[0]),
                                   part_power_half(k[1], f[1], exponent[1])};
  f32p result;
  __builtin_memcpy(&result, halves, sizeof result);
  if (unusual) {
    const f32p zero = {}, one = part_all(1.0f), infinity = part_all(__builtin_inff());
    const i32p whole = part_rint(y) == y, odd = whole & (part_rint(y * 0.5f) * 2.0f != y);
    result = base == 0.0f ? (y < 0.0f ? infinity : zero) : result;
    result = base == infinity ? (y < 0.0f ? zero : infinity) : result;
    result = base == 1.0f ? one : result;
    result = (f32p)((i32p)result ^ ((i32p)x & odd & (int)0x80000000));
    result = ((x < 0.0f) & (x > -infinity) & ~whole) ? part_all(__builtin_nanf("")) : result;
    result = ((x != x) | (y != y)) ? x + y : result;
    result = ((x == 1.0f) | (y == 0.0f)) ? one : result;
  }
  return result;
}
)"
    // atan2: the angle in the first eighth of the circle, whose tangent t is the smaller magnitude over the
    // larger one, is t + t^3 P(t^2). It is then reflected and turned to where the point lies, by a multiple
    // of pi/2 in two parts.
    R"(
FUSE_PART f32p part_atan2(f32p y, f32p x) {
  const f32p a = part_absolute(x), b = part_absolute(y), zero = {};
  const i32p steep = b > a, left = (i32p)x < 0;
  const f32p high = steep ? b : a, low = steep ? a : b;
  f32p t = low / high;
  t = low == high ? part_all(1.0f) : t;  // also of two infinities
  t = high == 0.0f ? zero : t;
  const f32p z = t * t;
  f32p p = part_fused(z, -0.00179360143f, part_all(0.0109145045f));
  p = part_fused(p, z, -0.0311776362f);
  p = part_fused(p, z, 0.0579573587f);
  p = part_fused(p, z, -0.084034346f);
  p = part_fused(p, z, 0.109521799f);
  p = part_fused(p, z, -0.142642409f);
  p = part_fused(p, z, 0.199985474f);
  p = part_fused(p, z, -0.333332986f);
  const f32p angle = part_fused(p, z * t, t);
  const f32p turn = steep ? part_all(1.0f) : left ? part_all(2.0f) : zero;
  const f32p turned = (f32p)((i32p)angle ^ ((steep ^ left) & (int)0x80000000));
  const f32p result = turn * 1.57079637f + (turned - turn * 4.37113883e-8f);
  return ((x != x) | (y != y)) ? x + y : part_copy_sign(result, y);
}
static __attribute__((noinline, cold)) f32p part_fmod_far(f32p x, f32p y, f32p result, i32p near) {
  for (int i = 0; i < part_lanes; ++i) {
    if (near[i] == 0) result[i] = fmodf(x[i], y[i]);
  }
  return result;
}
// The rounded quotient q of the magnitudes, cut to a whole number below 2^22, is right or one too large. The
// difference is exact: its magnitude is below that of y, and it is a multiple of the last bit of x or of y.
// Other lanes, and all where the product would be rounded, go to libm.
FUSE_PART f32p part_fmod(f32p x, f32p y) {
#if FUSE_FUSED
  const f32p a = part_absolute(x), b = part_absolute(y), q = a / b;
  const i32p near = (q < 0x1p22f) & (b >= 0x1p-100f) & (b <= 0x1p100f);
  f32p rest = part_fused(-part_floor(q), b, a);
  rest = rest < 0.0f ? rest + b : rest;
  const f32p result = part_copy_sign(rest, x);
#else
  const f32p result = {};
  const i32p near = {};
#endif
  return __builtin_expect(part_any(~near), 0) ? part_fmod_far(x, y, result, near) : result;
}
)"
    // Conversions of f16 and bf16, rounded to nearest even. Where the processor has no instruction, adding
    // 1/2 to a result that is subnormal as f16 rounds it, and a carry out of other significands moves into
    // the exponent.
    R"(
FUSE_PART u32p part_widen(u16p a) {
  unsigned short x[part_lanes];
  alignas(FUSE_VECTOR_BYTES) unsigned y[part_lanes];
  __builtin_memcpy(x, &a, sizeof x);
  for (int i = 0; i < part_lanes; ++i) y[i] = x[i];
  u32p result;
  __builtin_memcpy(&result, y, sizeof result);
  return result;
}
FUSE_PART u16p part_narrow(u32p a) {
  alignas(FUSE_VECTOR_BYTES) unsigned x[part_lanes];
  unsigned short y[part_lanes];
  __builtin_memcpy(x, &a, sizeof x);
  for (int i = 0; i < part_lanes; ++i) y[i] = (unsigned short)x[i];
  u16p result;
  __builtin_memcpy(&result, y, sizeof result);
  return result;
}
FUSE_PART u16p part_to_f16(f32p x) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_vcvtps2ph512_mask)
  x = x != x ? (f32p)(i32p{} + 0x7fffffff) : x;  // the NaN of which 0x7fff is made
  return (u16p)__builtin_ia32_vcvtps2ph512_mask(x, 0, i16_part{}, 0xffff);
#elif FUSE_PART_256 && defined(__F16C__) && FUSE_HAS(__builtin_ia32_vcvtps2ph256)
  x = x != x ? (f32p)(i32p{} + 0x7fffffff) : x;
  return (u16p)__builtin_ia32_vcvtps2ph256(x, 0);
#else
  const u32p sign = (u32p)x >> 16 & 0x8000, bits = (u32p)part_absolute(x);
  const u32p tiny = (u32p)((f32p)bits + 0.5f) - 0x3f000000;
  const u32p usual = (bits + 0xc8000fff + (bits >> 13 & 1)) >> 13;
  u32p result = (i32p)bits < 0x38800000 ? tiny : usual;
  result = (i32p)bits >= 0x47800000 ? u32p{} + 0x7c00 : result;
  return part_narrow(x != x ? u32p{} + 0x7fff : result | sign);
#endif
}
FUSE_PART f32p part_from_f16(u16p half) {
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_vcvtph2ps512_mask)
  return __builtin_ia32_vcvtph2ps512_mask((i16_part)half, f32p{}, 0xffff, 4);
#elif FUSE_PART_256 && defined(__F16C__) && FUSE_HAS(__builtin_ia32_vcvtph2ps256)
  return __builtin_ia32_vcvtph2ps256((i16_part)half);
#else
  const u32p wide = part_widen(half), bits = (wide & 0x7fff) << 13;
  const u32p usual = bits + 0x38000000;
  const u32p tiny = (u32p)((f32p)(bits + 0x38800000) - 0x1p-14f);
  u32p result = (i32p)bits < 0x800000 ? tiny : usual;
  result = (i32p)bits >= 0xf800000 ? usual + 0x38000000 : result;
  return (f32p)(result | (wide & 0x8000) << 16);
#endif
}
// To a float that bf16 has: its lower half is 0.
FUSE_PART f32p part_rounded_to_bf16(f32p x) {
  const u32p bits = (u32p)x, rounded = (bits + 0x7fff + (bits >> 16 & 1)) & 0xffff0000;
  return (f32p)(x != x ? u32p{} + 0x7fff0000 : rounded);
}
FUSE_PART u16p part_to_bf16(f32p x) { return part_narrow((u32p)part_rounded_to_bf16(x) >> 16); }
FUSE_PART f32p part_from_bf16(u16p half) { return (f32p)(part_widen(half) << 16); }
)"
    // Philox 4x32-10 (Salmon and others, SC 2011). Four lanes hold the words of a block. The two products of
    // a round are of the first and third word, which are the low halves of 64-bit lanes.
    R"(
FUSE_PART u64_part part_products(u64_part a, u64_part b) {  // of the low halves
#if FUSE_PART_512 && FUSE_HAS(__builtin_ia32_pmuludq512_mask)
  typedef long long i64_part __attribute__((vector_size(FUSE_VECTOR_BYTES)));
  return (u64_part)__builtin_ia32_pmuludq512_mask((i32p)a, (i32p)b, i64_part{}, 0xff);
#elif FUSE_PART_256 && FUSE_HAS(__builtin_ia32_pmuludq256)
  return (u64_part)__builtin_ia32_pmuludq256((i32p)a, (i32p)b);
#elif FUSE_PART_128 && FUSE_HAS(__builtin_ia32_pmuludq128)
  return (u64_part)__builtin_ia32_pmuludq128((i32p)a, (i32p)b);
#else
  return (a & 0xffffffffu) * (b & 0xffffffffu);
#endif
}
FUSE_PART u32p part_random_words(long long seed, long long offset, long long stream, long long block) {
  u64_part number, second, others, key, key_step, factors;
  for (int i = 0; i < part_lanes / 2; i += 2) {
    number[i] = number[i + 1] = (unsigned long long)i / 2;
    second[i] = 0, second[i + 1] = ~0ull;
    others[i] = 0, others[i + 1] = (unsigned long long)offset << 32 | (unsigned)stream;
    key[i] = (unsigned)seed, key[i + 1] = (unsigned long long)seed >> 32;
    key_step[i] = 0x9e3779b9u, key_step[i + 1] = 0xbb67ae85u;
    factors[i] = 0xd2511f53u, factors[i + 1] = 0xcd9e8d57u;
  }
  u64_part state = ((number + (unsigned long long)block) & ~second) | others;
  for (int round = 0; round < 10; ++round) {
    const u64_part products = part_products(state, factors);
    u32p turned;  // the four words of each block from last to first
    for (int i = 0; i < part_lanes; ++i) turned[i] = ((u32p)products)[i ^ 3];
    state = (u64_part)turned ^ state >> 32 ^ key;
    key = (u64_part)((u32p)key + (u32p)key_step);
  }
  return (u32p)state;
}
// Lane i is number `first + i` of the draw.
FUSE_PART f32p part_random(long long seed, long long offset, long long stream, long long first) {
  u32p words = part_random_words(seed, offset, stream, first >> 2);
  if ((first & 3) != 0) {
    const u32p next = part_random_words(seed, offset, stream, (first >> 2) + part_lanes / 4);
    unsigned both[2 * part_lanes];
    __builtin_memcpy(both, &words, sizeof words);
    __builtin_memcpy(both + part_lanes, &next, sizeof next);
    __builtin_memcpy(&words, both + (first & 3), sizeof words);
  }
  return __builtin_convertvector((i32p)(words >> 8), f32p) * 0x1p-24f;
}
)";

}  // namespace fuse::codegen
