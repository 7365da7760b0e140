// cuBLASLt as a table of functions, filled from libcublasLt at run time, and its handle for one device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cublasLt.h>

#include <memory>
#include <string>

#include "runtime/cuda/driver.hpp"
#include "runtime/device/backend.hpp"

#define FUSE_CUBLASLT_FUNCTIONS(F)        \
  F(cublasLtCreate)                       \
  F(cublasLtDestroy)                      \
  F(cublasLtGetVersion)                   \
  F(cublasLtGetStatusName)                \
  F(cublasLtGetStatusString)              \
  F(cublasLtMatmulDescCreate)             \
  F(cublasLtMatmulDescDestroy)            \
  F(cublasLtMatmulDescSetAttribute)       \
  F(cublasLtMatrixLayoutCreate)           \
  F(cublasLtMatrixLayoutDestroy)          \
  F(cublasLtMatrixLayoutSetAttribute)     \
  F(cublasLtMatmulPreferenceCreate)       \
  F(cublasLtMatmulPreferenceDestroy)      \
  F(cublasLtMatmulPreferenceSetAttribute) \
  F(cublasLtMatmulAlgoGetHeuristic)       \
  F(cublasLtMatmulAlgoConfigGetAttribute) \
  F(cublasLtMatmulAlgoCheck)              \
  F(cublasLtMatmul)

namespace fuse::runtime {

/// The library alone; absent, it is a value with a report. `path` is that of CudaLibraries.
SharedLibrary open_cublaslt_library(const std::string& path);

class CublasLt {
 public:
  /// Opens the library and makes a handle in the context. Throws missing_library, or a driver Error.
  CublasLt(std::shared_ptr<const CudaContext> context, const std::string& path);
  ~CublasLt();
  CublasLt(const CublasLt&) = delete;
  CublasLt& operator=(const CublasLt&) = delete;

#define FUSE_CUBLASLT_MEMBER(name) decltype(&::name) p_##name = nullptr;
  FUSE_CUBLASLT_FUNCTIONS(FUSE_CUBLASLT_MEMBER)
#undef FUSE_CUBLASLT_MEMBER

  Status status(const char* call, cublasStatus_t result, std::string_view detail = {}) const noexcept {
    return result == CUBLAS_STATUS_SUCCESS ? Status() : failure(call, result, detail);
  }
  void check(const char* call, cublasStatus_t result) const { status(call, result).throw_if_failed(); }
  cublasLtHandle_t handle() const { return handle_; }
  const CudaContext& context() const { return *context_; }
  const SharedLibrary& library() const { return library_; }

 private:
  Status failure(const char* call, cublasStatus_t result, std::string_view detail) const noexcept;

  std::shared_ptr<const CudaContext> context_;
  SharedLibrary library_;
  cublasLtHandle_t handle_ = nullptr;
};

/// The most scratch an algorithm may ask for.
constexpr std::int64_t gemm_workspace_limit = std::int64_t{32} << 20;

/// Chooses the algorithm. Throws user unsupported where cuBLASLt has none for the description.
std::unique_ptr<Gemm> make_cuda_gemm(std::shared_ptr<const CudaContext> context,
                                     std::shared_ptr<const CublasLt> blas, const GemmDesc& desc);
/// True where the result is empty or all zeros, which needs no cuBLASLt.
inline bool gemm_is_trivial(const GemmDesc& d) { return d.batch == 0 || d.m == 0 || d.n == 0 || d.k == 0; }

}  // namespace fuse::runtime
