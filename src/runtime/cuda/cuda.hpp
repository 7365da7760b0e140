// The cuda device: a Backend over the CUDA Driver API, NVRTC and cuBLASLt, all opened at run time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "runtime/device/backend.hpp"

namespace fuse::runtime {

/// Where the libraries are. Empty: the environment variables FUSE_LIBCUDA and FUSE_LIBCUBLASLT (switches for
/// tests and debugging), else the system's. A path given here, or there, is the only one tried.
struct CudaLibraries {
  std::string cuda{};
  std::string cublaslt{};
};

/// The GPU `ordinal`, by its primary context. Throws runtime missing_library without a driver, runtime driver
/// where the driver does not start (each failure of cuInit has its own text), and user invalid_argument for
/// an ordinal that the machine does not have. cuBLASLt is opened by the first prepare_gemm. Host memory given
/// to upload and download may be pageable: the driver then stages it, and download returns only when the
/// bytes are there. It must stay valid until the queue is synchronised in any case. free waits for the
/// device: it belongs outside of a run.
std::unique_ptr<Backend> make_cuda_backend(int ordinal, const CudaLibraries& libraries = {});

/// A Queue over the caller's CUstream, which stays the caller's. Throws user wrong-context errors
/// (invalid_argument) where the stream is of another context than the backend's. `backend` is one that
/// make_cuda_backend made.
std::unique_ptr<Queue> wrap_cuda_stream(Backend& backend, void* stream);

/// The ordinal of a backend that make_cuda_backend made; none for any other.
std::optional<int> cuda_ordinal(const Backend& backend);

}  // namespace fuse::runtime
