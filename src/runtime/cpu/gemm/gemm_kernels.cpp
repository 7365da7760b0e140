// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/gemm_kernels.hpp"

#include <cstddef>
#include <cstring>

#include "runtime/cpu/cores/machine.hpp"
#include "runtime/device/host_gemm.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

// Loops over the registers of a block have to be unrolled: a register has no index.
#if !defined(__clang__)
#define FUSE_GEMM_UNROLL _Pragma("GCC unroll 16")
#elif __has_feature(address_sanitizer)
// To optimise the kernels where every access is checked takes clang minutes.
#define FUSE_GEMM_UNROLL
#pragma clang optimize off
#else
#define FUSE_GEMM_UNROLL _Pragma("unroll")
#endif
#define FUSE_GEMM_LANES FUSE_GEMM_TARGET inline __attribute__((always_inline))

namespace fuse::runtime::cpu {
namespace {

constexpr std::size_t bytes_of_line = 64;

// The library is compiled for any x86-64. These functions are compiled for more, and called where the machine
// has it. Nothing that other files have too may be called from them without being inlined.

#if defined(__x86_64__)

namespace avx512 {

#define FUSE_GEMM_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx2,fma,f16c")))

using Vector = __m512;
constexpr std::string_view level_name = "x86-64-v4";
constexpr int lanes = 16, most_rows = 8, few_rows = 4, wide_vectors = 4, narrow_vectors = 2;
constexpr int two_rows_depth = 8, panel_vectors = 3, panel_rows = 8;

// Intrinsics with a mask: g++ 12 warns of the undefined registers that the ones without begin with.
constexpr __mmask16 every = 0xffff;

FUSE_GEMM_LANES Vector all(float x) { return _mm512_set1_ps(x); }
FUSE_GEMM_LANES Vector add(Vector x, Vector y) { return _mm512_add_ps(x, y); }
FUSE_GEMM_LANES Vector mul(Vector x, Vector y) { return _mm512_mul_ps(x, y); }
FUSE_GEMM_LANES Vector fma(Vector x, Vector y, Vector z) { return _mm512_fmadd_ps(x, y, z); }
FUSE_GEMM_LANES Vector wide_bf16(__m256i x) {
  return _mm512_castsi512_ps(_mm512_maskz_slli_epi32(every, _mm512_maskz_cvtepu16_epi32(every, x), 16));
}
FUSE_GEMM_LANES __mmask16 first_lanes(int count) { return static_cast<__mmask16>((1u << count) - 1u); }

FUSE_GEMM_LANES Vector load(const float* p) { return _mm512_loadu_ps(p); }
FUSE_GEMM_LANES Vector load(const bfloat16* p) {
  return wide_bf16(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FUSE_GEMM_LANES Vector load(const half* p) {
  return _mm512_maskz_cvtph_ps(every, _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
FUSE_GEMM_LANES Vector load_part(const float* p, int count) {
  return _mm512_maskz_loadu_ps(first_lanes(count), p);
}
FUSE_GEMM_LANES Vector load_part(const bfloat16* p, int count) {
  return wide_bf16(_mm256_maskz_loadu_epi16(first_lanes(count), p));
}
FUSE_GEMM_LANES Vector load_part(const half* p, int count) {
  return _mm512_maskz_cvtph_ps(every, _mm256_maskz_loadu_epi16(first_lanes(count), p));
}
FUSE_GEMM_LANES void store(float* p, Vector x) { _mm512_storeu_ps(p, x); }
FUSE_GEMM_LANES void store_part(float* p, Vector x, int count) {
  _mm512_mask_storeu_ps(p, first_lanes(count), x);
}
/// Rounded to nearest even, as narrow does.
FUSE_GEMM_LANES void store_narrow(float* p, Vector x) { store(p, x); }
FUSE_GEMM_LANES void store_narrow(bfloat16* p, Vector x) {
  const __m512i u = _mm512_castps_si512(x), high = _mm512_maskz_srli_epi32(every, u, 16);
  const __m512i even = _mm512_and_si512(high, _mm512_set1_epi32(1)),
                sum = _mm512_add_epi32(_mm512_add_epi32(u, _mm512_set1_epi32(0x7fff)), even);
  const __m512i none =
      _mm512_or_si512(_mm512_and_si512(high, _mm512_set1_epi32(0x8000)), _mm512_set1_epi32(0x7fc0));
  const __m512i rounded = _mm512_mask_mov_epi32(_mm512_maskz_srli_epi32(every, sum, 16),
                                                _mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q), none);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), _mm512_maskz_cvtepi32_epi16(every, rounded));
}
FUSE_GEMM_LANES void store_narrow(half* p, Vector x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_maskz_cvtps_ph(every, x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
/// The sums of the lanes of four vectors.
FUSE_GEMM_LANES void sum_lanes(Vector a, Vector b, Vector c, Vector d, float* to) {
  const Vector ab = _mm512_add_ps(_mm512_maskz_unpacklo_ps(every, a, b),
                                  _mm512_maskz_unpackhi_ps(every, a, b)),
               cd = _mm512_add_ps(_mm512_maskz_unpacklo_ps(every, c, d),
                                  _mm512_maskz_unpackhi_ps(every, c, d));
  const Vector of_quarters = _mm512_add_ps(_mm512_maskz_shuffle_ps(every, ab, cd, 0x44),
                                           _mm512_maskz_shuffle_ps(every, ab, cd, 0xee));
  const __m256 of_halves = _mm256_add_ps(_mm512_maskz_extractf32x8_ps(0xff, of_quarters, 0),
                                         _mm512_maskz_extractf32x8_ps(0xff, of_quarters, 1));
  _mm_store_ps(to, _mm_add_ps(_mm256_castps256_ps128(of_halves), _mm256_extractf128_ps(of_halves, 1)));
}

#include "runtime/cpu/gemm/gemm_kernel_bodies.hpp"
#undef FUSE_GEMM_TARGET

}  // namespace avx512

namespace avx2 {

#define FUSE_GEMM_TARGET __attribute__((target("avx2,fma,f16c")))

using Vector = __m256;
constexpr std::string_view level_name = "x86-64-v3";
constexpr int lanes = 8, most_rows = 6, few_rows = 2, wide_vectors = 4, narrow_vectors = 2;
constexpr int two_rows_depth = 6, panel_vectors = 2, panel_rows = 6;

FUSE_GEMM_LANES Vector all(float x) { return _mm256_set1_ps(x); }
FUSE_GEMM_LANES Vector add(Vector x, Vector y) { return _mm256_add_ps(x, y); }
FUSE_GEMM_LANES Vector mul(Vector x, Vector y) { return _mm256_mul_ps(x, y); }
FUSE_GEMM_LANES Vector fma(Vector x, Vector y, Vector z) { return _mm256_fmadd_ps(x, y, z); }
FUSE_GEMM_LANES Vector wide_bf16(__m128i x) {
  return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(x), 16));
}
FUSE_GEMM_LANES __m256i first_lanes(int count) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(count), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
/// The first elements, and zeros: what lies behind them may not be read.
template <class T>
FUSE_GEMM_LANES __m128i part_of(const T* p, int count) {
  if (count == lanes) return _mm_loadu_si128(reinterpret_cast<const __m128i*>(p));
  alignas(16) T part[lanes] = {};
  for (int i = 0; i < count; ++i) part[i] = p[i];
  return _mm_load_si128(reinterpret_cast<const __m128i*>(part));
}

FUSE_GEMM_LANES Vector load(const float* p) { return _mm256_loadu_ps(p); }
FUSE_GEMM_LANES Vector load(const bfloat16* p) {
  return wide_bf16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FUSE_GEMM_LANES Vector load(const half* p) {
  return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
FUSE_GEMM_LANES Vector load_part(const float* p, int count) {
  return _mm256_maskload_ps(p, first_lanes(count));
}
FUSE_GEMM_LANES Vector load_part(const bfloat16* p, int count) { return wide_bf16(part_of(p, count)); }
FUSE_GEMM_LANES Vector load_part(const half* p, int count) { return _mm256_cvtph_ps(part_of(p, count)); }
FUSE_GEMM_LANES void store(float* p, Vector x) { _mm256_storeu_ps(p, x); }
FUSE_GEMM_LANES void store_part(float* p, Vector x, int count) {
  _mm256_maskstore_ps(p, first_lanes(count), x);
}
FUSE_GEMM_LANES void store_narrow(float* p, Vector x) { store(p, x); }
FUSE_GEMM_LANES void store_narrow(bfloat16* p, Vector x) {
  const __m256i u = _mm256_castps_si256(x), high = _mm256_srli_epi32(u, 16);
  const __m256i even = _mm256_and_si256(high, _mm256_set1_epi32(1)),
                sum = _mm256_add_epi32(_mm256_add_epi32(u, _mm256_set1_epi32(0x7fff)), even);
  const __m256i none =
      _mm256_or_si256(_mm256_and_si256(high, _mm256_set1_epi32(0x8000)), _mm256_set1_epi32(0x7fc0));
  const __m256i rounded = _mm256_blendv_epi8(_mm256_srli_epi32(sum, 16), none,
                                             _mm256_castps_si256(_mm256_cmp_ps(x, x, _CMP_UNORD_Q)));
  // Packed by halves of the register, which then have to meet.
  const __m256i packed = _mm256_permute4x64_epi64(_mm256_packus_epi32(rounded, rounded), 0x08);
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_castsi256_si128(packed));
}
FUSE_GEMM_LANES void store_narrow(half* p, Vector x) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p),
                   _mm256_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
FUSE_GEMM_LANES void sum_lanes(Vector a, Vector b, Vector c, Vector d, float* to) {
  const Vector ab = _mm256_add_ps(_mm256_unpacklo_ps(a, b), _mm256_unpackhi_ps(a, b)),
               cd = _mm256_add_ps(_mm256_unpacklo_ps(c, d), _mm256_unpackhi_ps(c, d));
  const Vector of_halves = _mm256_add_ps(_mm256_shuffle_ps(ab, cd, 0x44), _mm256_shuffle_ps(ab, cd, 0xee));
  _mm_store_ps(to, _mm_add_ps(_mm256_castps256_ps128(of_halves), _mm256_extractf128_ps(of_halves, 1)));
}

#include "runtime/cpu/gemm/gemm_kernel_bodies.hpp"
#undef FUSE_GEMM_TARGET

}  // namespace avx2

#endif

namespace portable {

#define FUSE_GEMM_TARGET

// What g++ and clang make of four floats: the vectors that every x86-64 and every AArch64 has.
using Vector = float __attribute__((vector_size(16)));
constexpr std::string_view level_name = "portable";
constexpr int lanes = 4, most_rows = 4, few_rows = 0, wide_vectors = 2, narrow_vectors = 2;
constexpr int two_rows_depth = 6, panel_vectors = 2, panel_rows = 4;

FUSE_GEMM_LANES Vector all(float x) { return Vector{x, x, x, x}; }
FUSE_GEMM_LANES Vector add(Vector x, Vector y) { return x + y; }
FUSE_GEMM_LANES Vector mul(Vector x, Vector y) { return x * y; }
FUSE_GEMM_LANES Vector fma(Vector x, Vector y, Vector z) { return x * y + z; }
FUSE_GEMM_LANES Vector load(const float* p) {
  Vector x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
FUSE_GEMM_LANES Vector load(const T* p) {
  return Vector{widen(p[0]), widen(p[1]), widen(p[2]), widen(p[3])};
}
template <class T>
FUSE_GEMM_LANES Vector load_part(const T* p, int count) {
  return Vector{count > 0 ? widen(p[0]) : 0, count > 1 ? widen(p[1]) : 0, count > 2 ? widen(p[2]) : 0,
                count > 3 ? widen(p[3]) : 0};
}
FUSE_GEMM_LANES void store(float* p, Vector x) { std::memcpy(p, &x, sizeof x); }
FUSE_GEMM_LANES void store_part(float* p, Vector x, int count) {
  for (int i = 0; i < count; ++i) p[i] = x[i];
}
template <class T>
FUSE_GEMM_LANES void store_narrow(T* p, Vector x) {
  for (int i = 0; i < lanes; ++i) p[i] = narrow(x[i], static_cast<T*>(nullptr));
}
FUSE_GEMM_LANES void sum_lanes(Vector a, Vector b, Vector c, Vector d, float* to) {
  const Vector total = Vector{a[0], b[0], c[0], d[0]} + Vector{a[1], b[1], c[1], d[1]} +
                       (Vector{a[2], b[2], c[2], d[2]} + Vector{a[3], b[3], c[3], d[3]});
  store(to, total);
}

#include "runtime/cpu/gemm/gemm_kernel_bodies.hpp"
#undef FUSE_GEMM_TARGET

}  // namespace portable

#undef FUSE_GEMM_LANES
#undef FUSE_GEMM_UNROLL
#if defined(__clang__)
#pragma clang optimize on
#endif

}  // namespace

const GemmKernels* gemm_kernels_of(std::string_view level) {
#if defined(__x86_64__)
  const std::string_view has = this_machine().level;
  if (level == "x86-64-v4") return has == level ? &avx512::kernels : nullptr;
  if (level == "x86-64-v3") return has == level || has == "x86-64-v4" ? &avx2::kernels : nullptr;
#endif
  return level == "portable" ? &portable::kernels : nullptr;
}

const GemmKernels& gemm_kernels() {
  static const GemmKernels* const best = [] {
    for (const std::string_view level : {"x86-64-v4", "x86-64-v3"})
      if (const GemmKernels* const kernels = gemm_kernels_of(level)) return kernels;
    return gemm_kernels_of("portable");
  }();
  return *best;
}

}  // namespace fuse::runtime::cpu
