// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cuda_backend.hpp"

#include <fmt/format.h>

#include <array>

#include "base/formatted_status.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/device/residency_ledger.hpp"
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {
namespace {

CudaBackend& as_cuda(Backend& backend) {
  if (auto* cuda = dynamic_cast<CudaBackend*>(&backend)) return *cuda;
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = "a backend of another device was given to the cuda device"});
}

std::string version_text(int version) { return fmt::format("{}.{}", version / 1000, version % 1000 / 10); }

}  // namespace

// ---- queues

CudaQueue::CudaQueue(std::shared_ptr<const CudaContext> context)
    : Queue(context.get()), context_(std::move(context)), owned_(true) {
  const Status status = context_->run_apart([&](const Driver& d) {
    return d.status("cuStreamCreate", d.p_cuStreamCreate(&stream_, CU_STREAM_NON_BLOCKING));
  });
  if (status) return;
  // Popping the context may report an error of earlier work after the stream was made.
  if (stream_) context_->release([&](const Driver& d) { d.p_cuStreamDestroy(stream_); });
  status.throw_if_failed();
}

CudaQueue::CudaQueue(std::shared_ptr<const CudaContext> context, CUstream stream)
    : Queue(context.get()), context_(std::move(context)), stream_(stream) {
  // The default streams (0, 1, 2) belong to whichever context is current, which the backend makes its own.
  if (reinterpret_cast<std::uintptr_t>(stream) <= 2) return;
  CUcontext owner = nullptr;
  context_
      ->run([&](const Driver& d) { return d.status("cuStreamGetCtx", d.p_cuStreamGetCtx(stream, &owner)); })
      .throw_if_failed();
  if (owner == context_->handle()) return;
  throw Error(
      {.code = ErrorCode::invalid_argument,
       .message = fmt::format("the stream belongs to another context than the primary context of CUDA "
                              "device {}",
                              context_->ordinal()),
       .hint = "make the stream with the runtime API, or under cuDevicePrimaryCtxRetain's context, on "
               "the device that fuse was given"});
}

CudaQueue::~CudaQueue() {
  if (owned_) context_->release([&](const Driver& d) { d.p_cuStreamDestroy(stream_); });
}

Status CudaQueue::synchronize() noexcept {
  contract::forbid("waits for a stream");
  return context_->run_apart(
      [&](const Driver& d) { return d.status("cuStreamSynchronize", d.p_cuStreamSynchronize(stream_)); });
}

Status cuda_stream_of(const CudaContext& context, Queue& queue, CUstream& stream) noexcept {
  if (queue.owner != &context) return Status(ErrorCode::internal, "the queue was made by another device");
  stream = static_cast<const CudaQueue&>(queue).stream();
  return Status();
}

// ---- memory

CudaBackend::CudaBackend(std::shared_ptr<const CudaContext> context, const CudaLibraries& libraries)
    : Backend(cuda_toolchain(context->shared_driver(), context->target())),
      libraries_(libraries),
      context_(std::move(context)) {
  // The library and its primary context: what distinguishes the GPUs of the process.
  share_residency(
      ResidencyLedger::of(reinterpret_cast<const void*>(context_->driver().p_cuInit), context_->handle()));
}

std::string CudaBackend::report() const {
  const Driver& d = context_->driver();
  std::string text = d.library.report();
  text += fmt::format("  driver of CUDA {}; device {}: {}, sm_{}, {} SMs, clusters of {}\n",
                      version_text(d.version), context_->ordinal(), target().name, target().arch,
                      target().sms, target().max_cluster);
  if (const Status& asked = context_->cluster_status(); !asked)
    text += fmt::format("  larger clusters are not used, as the driver did not say: {}\n", asked.message());
  if (toolchain()) text += toolchain()->report();
  const std::lock_guard lock(mutex_);
  if (cublaslt_) {
    text += cublaslt_->library().report();
    text += fmt::format("  version {}\n", cublaslt_->p_cublasLtGetVersion());
  } else {
    text += "cuBLASLt: not looked for yet: opened by the first GEMM\n";
  }
  return text;
}

void* CudaBackend::allocate(std::int64_t bytes) {
  contract::forbid("allocates device memory");
  if (bytes < 0) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::invalid_argument,
                 .message = fmt::format("allocating {} bytes", bytes)});
  }
  CUdeviceptr address = 0;
  const Status status = context_->run_apart([&](const Driver& d) {
    // The driver refuses zero bytes; what it gives is aligned to 256 or more.
    const CUresult result = d.p_cuMemAlloc(&address, bytes ? static_cast<std::size_t>(bytes) : 1);
    if (result != CUDA_ERROR_OUT_OF_MEMORY) return d.status("cuMemAlloc", result);
    std::size_t free = 0, total = 0;
    std::array<char, 128> text;
    if (d.p_cuMemGetInfo(&free, &total) != CUDA_SUCCESS) free = total = 0;
    return d.status(
        "cuMemAlloc", result,
        format_cut(text, "{} bytes asked, {} of {} free", fmt::make_format_args(bytes, free, total)));
  });
  if (!status && address) context_->release([&](const Driver& d) { d.p_cuMemFree(address); });
  if (status.code() == ErrorCode::out_of_memory) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = status.code(),
                 .message = std::string(status.message()),
                 .hint =
                     "give buffers and workspaces back, run with smaller dims, or see nvidia-smi for other "
                     "processes that hold memory"});
  }
  status.throw_if_failed();
  return reinterpret_cast<void*>(address);
}

void CudaBackend::free(void* address) noexcept {
  if (address) context_->release([&](const Driver& d) { d.p_cuMemFree(device_pointer(address)); });
}

std::unique_ptr<Queue> CudaBackend::create_queue() { return std::make_unique<CudaQueue>(context_); }

std::unique_ptr<Queue> CudaBackend::wrap(CUstream stream) {
  return std::make_unique<CudaQueue>(context_, stream);
}

template <class F>
Status CudaBackend::transfer(Queue& queue, const char* call, std::int64_t bytes, F&& body) noexcept {
  if (bytes < 0) return Status(ErrorCode::internal, "a transfer of a negative number of bytes");
  CUstream stream = nullptr;
  if (const Status status = cuda_stream_of(*context_, queue, stream); !status) return status;
  if (bytes == 0) return Status();
  return context_->run(
      [&](const Driver& d) { return d.status(call, body(d, stream, static_cast<std::size_t>(bytes))); });
}

Status CudaBackend::upload(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return transfer(queue, "cuMemcpyHtoDAsync", bytes, [&](const Driver& d, CUstream stream, std::size_t n) {
    return d.p_cuMemcpyHtoDAsync(device_pointer(to), from, n, stream);
  });
}

Status CudaBackend::download(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return transfer(queue, "cuMemcpyDtoHAsync", bytes, [&](const Driver& d, CUstream stream, std::size_t n) {
    return d.p_cuMemcpyDtoHAsync(to, device_pointer(from), n, stream);
  });
}

Status CudaBackend::copy(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept {
  return transfer(queue, "cuMemcpyDtoDAsync", bytes, [&](const Driver& d, CUstream stream, std::size_t n) {
    return d.p_cuMemcpyDtoDAsync(device_pointer(to), device_pointer(from), n, stream);
  });
}

Status CudaBackend::memset(Queue& queue, void* to, int byte, std::int64_t bytes) noexcept {
  return transfer(queue, "cuMemsetD8Async", bytes, [&](const Driver& d, CUstream stream, std::size_t n) {
    return d.p_cuMemsetD8Async(device_pointer(to), static_cast<unsigned char>(byte), n, stream);
  });
}

// ---- GEMM

std::unique_ptr<Gemm> CudaBackend::prepare_gemm(const GemmDesc& desc) {
  check_gemm_desc(desc);
  std::shared_ptr<const CublasLt> blas;
  if (gemm_is_trivial(desc)) {
    check_gemm_algorithm(desc, 1);
  } else {
    contract::forbid("takes a lock");
    const std::lock_guard lock(mutex_);
    if (!cublaslt_) cublaslt_ = std::make_shared<CublasLt>(context_, libraries_.cublaslt);
    blas = cublaslt_;
  }
  return make_cuda_gemm(context_, std::move(blas), desc);
}

std::string CudaBackend::gemm_library() const {
  const SharedLibrary library = open_cublaslt_library(libraries_.cublaslt);
  if (!library) return "no cuBLASLt";
  return fmt::format("cuBLASLt {}", library.get<decltype(&cublasLtGetVersion)>("cublasLtGetVersion")());
}

// ---- the public face

std::unique_ptr<Backend> make_cuda_backend(int ordinal, const CudaLibraries& libraries) {
  return std::make_unique<CudaBackend>(std::make_shared<CudaContext>(Driver::load(libraries), ordinal),
                                       libraries);
}

std::unique_ptr<Queue> wrap_cuda_stream(Backend& backend, void* stream) {
  return as_cuda(backend).wrap(static_cast<CUstream>(stream));
}

std::optional<int> cuda_ordinal(const Backend& backend) {
  const auto* const own = dynamic_cast<const CudaBackend*>(&backend);
  return own ? std::optional<int>(own->ordinal()) : std::nullopt;
}

}  // namespace fuse::runtime
