// GEMM on the CPU: what the emulated device runs, and what tests compare with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <memory>
#include <string>

#include "os/shared_library.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

// Elements of operands as they are summed, and sums as results. The 16-bit conversions are branch-light
// integer code that a compiler vectorises; those of fuse::half go through double and libm.

inline float widen(half x) {
  constexpr std::uint32_t exponent_mask = 0x7c00u << 13;
  std::uint32_t u = (x.bits & 0x7fffu) << 13;
  const std::uint32_t exponent = u & exponent_mask;
  u += (127u - 15u) << 23;
  // Infinity and NaN keep the largest exponent; a subnormal is renormalised by an exact subtraction.
  const std::uint32_t special = u + ((128u - 16u) << 23);
  const float tiny = std::bit_cast<float>(u + (1u << 23)) - std::bit_cast<float>(113u << 23);
  u = exponent == exponent_mask ? special : exponent == 0 ? std::bit_cast<std::uint32_t>(tiny) : u;
  return std::bit_cast<float>(u | static_cast<std::uint32_t>(x.bits & 0x8000u) << 16);
}
inline float widen(bfloat16 x) { return std::bit_cast<float>(static_cast<std::uint32_t>(x.bits) << 16); }
inline float widen(float x) { return x; }
inline double widen(double x) { return x; }
// Integers wrap, so they are summed unsigned.
inline std::uint32_t widen(std::int32_t x) { return static_cast<std::uint32_t>(x); }
inline std::uint64_t widen(std::int64_t x) { return static_cast<std::uint64_t>(x); }

template <class T>
inline T narrow(T x, T*) {
  return x;
}
inline std::int32_t narrow(std::uint32_t x, std::int32_t*) { return static_cast<std::int32_t>(x); }
inline std::int64_t narrow(std::uint64_t x, std::int64_t*) { return static_cast<std::int64_t>(x); }
inline half narrow(float x, half*) {
  std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t sign = u & 0x80000000u;
  u ^= sign;
  const std::uint32_t overflow = u > 255u << 23 ? 0x7e00u : 0x7c00u;
  // Adding 0.5 leaves a subnormal's bits at the bottom of the sum, rounded to nearest even by the adder.
  constexpr std::uint32_t magic = (127u - 15u + 23u - 10u + 1u) << 23;
  const std::uint32_t tiny =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(u) + std::bit_cast<float>(magic)) - magic;
  const std::uint32_t normal = (u - ((127u - 15u) << 23) + 0xfffu + (u >> 13 & 1u)) >> 13;
  const std::uint32_t magnitude = u >= (127u + 16u) << 23 ? overflow : u < 113u << 23 ? tiny : normal;
  half result;
  result.bits = static_cast<std::uint16_t>(magnitude | sign >> 16);
  return result;
}
inline bfloat16 narrow(float x, bfloat16*) {
  const std::uint32_t u = std::bit_cast<std::uint32_t>(x);
  const std::uint32_t nan = (u >> 16 & 0x8000u) | 0x7fc0u;
  const std::uint32_t rounded = (u + 0x7fffu + (u >> 16 & 1u)) >> 16;
  bfloat16 result;
  result.bits = static_cast<std::uint16_t>((u & 0x7fffffffu) > 255u << 23 ? nan : rounded);
  return result;
}

/// A GEMM in host memory, one of GemmDesc::calls. Thread safe, and the same bits for the same operands.
class HostGemm {
 public:
  virtual ~HostGemm() = default;
  virtual void run(const void* a, const void* b, void* c, const void* extra = nullptr) const noexcept = 0;
};

/// Floating types by OpenBLAS where it is installed (FUSE_LIBOPENBLAS names one to use instead), and by the
/// plain loops as algorithm 1; else, and for integers, by the loops alone. Throws as check_gemm_desc and
/// check_gemm_algorithm do.
std::unique_ptr<HostGemm> make_host_gemm(const GemmDesc& desc);

/// Always the loops. Each element is summed in ascending k: f16, bf16 and f32 in f32, f64 in f64, rounded
/// once to the result type; integers wrap.
std::unique_ptr<HostGemm> make_plain_gemm(const GemmDesc& desc);

/// What every device asks of a GemmDesc. Throws internal errors for a malformed one (a negative extent or
/// stride, a matrix of 2^63 bytes, results of a batch that overlap), user unsupported for types that have no
/// GEMM (bool, a result that is neither the operands' type nor f32 of a 16-bit float), internal for an
/// epilogue on a result that is not the accumulator's type, or of no products.
void check_gemm_desc(const GemmDesc& desc);
/// Throws invalid_argument where the desc's algorithm is none of the `proposed` ones: it names the extents.
void check_gemm_algorithm(const GemmDesc& desc, std::size_t proposed);
/// The same with the algorithm that `recorded` names by its rank, where it is there.
GemmDesc with_recorded_rank(GemmDesc desc);
/// "4 x 5 matrices of f32 to f32 by k = 6, batch 1", for messages.
std::string gemm_text(const GemmDesc& desc);

/// Opened once per process; absent, it is a value with a report.
const SharedLibrary& openblas_library();
std::string openblas_config();  ///< its version and how it was built, in its own words; empty without it

/// Its name, version and the core whose kernels it runs: "OpenBLAS 0.3.21 for Cooperlake"; says so where the
/// environment chose the core. Empty without it.
std::string openblas_name();

/// False where it is absent or of a kind that cannot be used: GEMMs are plain loops then.
bool openblas_used();

/// Where OpenBLAS was looked for, and how it was built.
std::string host_gemm_report();

}  // namespace fuse::runtime
