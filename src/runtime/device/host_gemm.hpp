// GEMM on the CPU: what the emulated device runs, and what tests compare with.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "os/shared_library.hpp"
#include "runtime/device/backend.hpp"

namespace fuse::runtime {

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
/// "4 x 5 matrices of f32 to f32 by k = 6, batch 1", for messages.
std::string gemm_text(const GemmDesc& desc);

/// Opened once per process; absent, it is a value with a report.
const SharedLibrary& openblas_library();
std::string openblas_config();  ///< its version and how it was built, in its own words; empty without it

/// False where it is absent or of a kind that cannot be used: GEMMs are plain loops then.
bool openblas_used();

/// Where OpenBLAS was looked for, and how it was built.
std::string host_gemm_report();

}  // namespace fuse::runtime
