// The CUDA Driver API as a table of functions, filled from libcuda.so.1 at run time; and the device's
// context. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <atomic>
#include <fuse/error.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "os/shared_library.hpp"
#include "plan/source.hpp"
#include "runtime/cuda/cuda.hpp"
#include "target/target.hpp"

// cuda.h maps each name to the version that its prototype describes (cuMemAlloc to cuMemAlloc_v2): both the
// type and the symbol looked up follow from that macro, so they cannot disagree. Nothing newer than
// CUDA 12.0.
#define FUSE_CUDA_FUNCTIONS(F)                   \
  F(cuInit)                                      \
  F(cuDriverGetVersion)                          \
  F(cuGetErrorName)                              \
  F(cuGetErrorString)                            \
  F(cuDeviceGetCount)                            \
  F(cuDeviceGet)                                 \
  F(cuDeviceGetName)                             \
  F(cuDeviceGetAttribute)                        \
  F(cuDevicePrimaryCtxRetain)                    \
  F(cuDevicePrimaryCtxRelease)                   \
  F(cuCtxPushCurrent)                            \
  F(cuCtxPopCurrent)                             \
  F(cuCtxSynchronize)                            \
  F(cuMemGetInfo)                                \
  F(cuMemAlloc)                                  \
  F(cuMemFree)                                   \
  F(cuMemcpyHtoDAsync)                           \
  F(cuMemcpyDtoHAsync)                           \
  F(cuMemcpyDtoDAsync)                           \
  F(cuMemsetD8Async)                             \
  F(cuMemsetD2D8Async)                           \
  F(cuStreamCreate)                              \
  F(cuStreamDestroy)                             \
  F(cuStreamSynchronize)                         \
  F(cuStreamGetCtx)                              \
  F(cuStreamWaitEvent)                           \
  F(cuStreamBeginCapture)                        \
  F(cuStreamEndCapture)                          \
  F(cuStreamIsCapturing)                         \
  F(cuThreadExchangeStreamCaptureMode)           \
  F(cuEventCreate)                               \
  F(cuEventDestroy)                              \
  F(cuEventRecord)                               \
  F(cuEventQuery)                                \
  F(cuEventSynchronize)                          \
  F(cuGraphCreate)                               \
  F(cuGraphAddKernelNode)                        \
  F(cuGraphAddMemcpyNode)                        \
  F(cuGraphAddMemsetNode)                        \
  F(cuGraphAddChildGraphNode)                    \
  F(cuGraphKernelNodeSetAttribute)               \
  F(cuGraphExecKernelNodeSetParams)              \
  F(cuGraphExecMemcpyNodeSetParams)              \
  F(cuGraphExecMemsetNodeSetParams)              \
  F(cuGraphExecChildGraphNodeSetParams)          \
  F(cuGraphInstantiateWithFlags)                 \
  F(cuGraphUpload)                               \
  F(cuGraphLaunch)                               \
  F(cuGraphExecDestroy)                          \
  F(cuGraphDestroy)                              \
  F(cuModuleLoadData)                            \
  F(cuModuleUnload)                              \
  F(cuModuleGetFunction)                         \
  F(cuFuncGetAttribute)                          \
  F(cuFuncSetAttribute)                          \
  F(cuOccupancyMaxActiveBlocksPerMultiprocessor) \
  F(cuOccupancyMaxActiveClusters)                \
  F(cuOccupancyMaxPotentialClusterSize)          \
  F(cuLaunchKernel)                              \
  F(cuLaunchCooperativeKernel)

// Used where the driver has them.
#if CUDA_VERSION >= 12040
#define FUSE_CUDA_OPTIONAL_FUNCTIONS(F) F(cuFuncLoad)
#else
#define FUSE_CUDA_OPTIONAL_FUNCTIONS(F)
#endif

// The macro's argument is expanded on its way through: FUSE_CUDA_NAME(cuMemAlloc) is "cuMemAlloc_v2".
#define FUSE_CUDA_STRING(name) #name
#define FUSE_CUDA_NAME(name) FUSE_CUDA_STRING(name)

namespace fuse::runtime {

struct Driver {
  /// Opens the library, without starting it. Throws missing_library.
  static std::shared_ptr<Driver> open(const CudaLibraries& libraries);
  /// Opens the library and calls cuInit. Throws missing_library, or a driver Error whose message says what
  /// the failure of cuInit means, or incompatible_version where it is older than CUDA 12.
  static std::shared_ptr<const Driver> load(const CudaLibraries& libraries);

  SharedLibrary library;
  int version = 0;  ///< 13000 for 13.0
  LibraryVersion cuda_version() const { return {version / 1000, version % 1000 / 10}; }

// The prefix keeps the members' names out of reach of cuda.h's macros.
#define FUSE_CUDA_MEMBER(name) decltype(&::name) p_##name = nullptr;
  FUSE_CUDA_FUNCTIONS(FUSE_CUDA_MEMBER)
  FUSE_CUDA_OPTIONAL_FUNCTIONS(FUSE_CUDA_MEMBER)
  FUSE_CUDA_MEMBER(cuEventElapsedTime)  // by its newest name, else its first: the arguments are the same
#undef FUSE_CUDA_MEMBER

  /// Status{driver} (or out_of_memory): "cuLaunchKernel: CUDA_ERROR_ILLEGAL_ADDRESS (700): an illegal memory
  /// access was encountered: kernel softmax". Ok when `result` is success.
  Status status(const char* call, CUresult result, std::string_view detail = {}) const noexcept {
    return result == CUDA_SUCCESS ? Status() : failure(call, result, detail);
  }
  void check(const char* call, CUresult result, std::string_view detail = {}) const {
    status(call, result, detail).throw_if_failed();
  }

 private:
  Status failure(const char* call, CUresult result, std::string_view detail) const noexcept;

 public:
  static thread_local CUresult last_failure;  ///< the last failure of this thread's calls
};

/// The library alone: none of its functions was called. Absent, it is a value with a report.
SharedLibrary open_driver_library(const CudaLibraries& libraries);

/// Throws incompatible_version where `library` (NVRTC, cuBLASLt) is of a newer CUDA major version than the
/// driver, which then loads none of its code.
void check_driver_covers(const Driver& driver, const SharedLibrary& library);
/// Throws unsupported for a kernel whose clusters the GPU does not have.
void check_clusters(const std::vector<codegen::KernelInfo>& kernels, const Target& target);

/// A device and its primary context, retained while anything made in it lives.
class CudaContext {
 public:
  CudaContext(std::shared_ptr<const Driver> driver, int ordinal);
  ~CudaContext();
  CudaContext(const CudaContext&) = delete;
  CudaContext& operator=(const CudaContext&) = delete;

  const Driver& driver() const { return *driver_; }
  const std::shared_ptr<const Driver>& shared_driver() const { return driver_; }
  CUcontext handle() const { return context_; }
  CUdevice device() const { return device_; }
  int ordinal() const { return ordinal_; }
  const Target& target() const { return target_; }
  /// Why the largest cluster could not be asked for, and is taken to be the portable one; ok where it was.
  const Status& cluster_status() const { return cluster_status_; }

  /// Runs `body`, which returns a Status, with this context current, and gives the caller its own back on
  /// every path. `body` must not throw.
  template <class F>
  Status run(F&& body) const noexcept {
    if (dead_.load(std::memory_order_relaxed) != CUDA_SUCCESS) return after_death();
    const Driver& d = *driver_;
    const bool inside = entered_ == this;
    if (!inside) {
      if (forked()) return after_fork();
      if (const CUresult pushed = d.p_cuCtxPushCurrent(context_); pushed != CUDA_SUCCESS) {
        return d.status("cuCtxPushCurrent", pushed);
      }
    }
    Status status = body(d);  // written once, so that it is inlined: a launch costs little else
    if (!status) note_failure();
    if (inside) return status;
    CUcontext popped = nullptr;
    const CUresult result = d.p_cuCtxPopCurrent(&popped);
    // The pop takes effect even where it reports an error of earlier work: that error is the run's.
    if (result != CUDA_SUCCESS) note_failure();
    return status ? d.status("cuCtxPopCurrent", result) : status;
  }

  /// As run, for calls that a stream capture forbids (they allocate, load, ask or wait): captures of this
  /// thread and of others go on as if nothing had been called.
  template <class F>
  Status run_apart(F&& body) const noexcept {
    return run([&](const Driver& d) {
      CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
      if (const CUresult relaxed = d.p_cuThreadExchangeStreamCaptureMode(&mode); relaxed != CUDA_SUCCESS) {
        return d.status("cuThreadExchangeStreamCaptureMode", relaxed);
      }
      const Status status = body(d);
      const CUresult restored = d.p_cuThreadExchangeStreamCaptureMode(&mode);
      return status ? d.status("cuThreadExchangeStreamCaptureMode", restored) : status;
    });
  }

  /// Whether this process is a fork of the one that made the context. A GPU's context does not survive a
  /// fork: nothing is asked of the driver any more.
  bool forked() const noexcept;
  Status after_fork() const noexcept;
  /// After an illegal access, and what else ends a context, every call fails: what comes after it is not
  /// asked.
  Status after_death() const noexcept;

  /// Waits for all work of the context, before something is freed that work in flight may need. Failures are
  /// not reported: nobody is left, or the next call reports them. A capture in this process may not survive
  /// it.
  void wait_for_all() const noexcept {
    (void)!run_apart([](const Driver& d) { return d.status("cuCtxSynchronize", d.p_cuCtxSynchronize()); });
  }

  /// Makes this context current for the runs of this thread until leave, which gives the caller its own back
  /// and reports an error of earlier work.
  Status enter() const noexcept;
  Status leave() const noexcept;

  /// As run_apart, for giving an object back: `body` is called even where the context could not be made
  /// current (the handle knows its context), and failures are not reported: a destructor has nobody to report
  /// to.
  template <class F>
  void release(F&& body) const noexcept {
    const Driver& d = *driver_;
    if (forked()) return;
    const CUresult pushed = d.p_cuCtxPushCurrent(context_);
    CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
    const CUresult relaxed = d.p_cuThreadExchangeStreamCaptureMode(&mode);
    body(d);
    if (relaxed == CUDA_SUCCESS) d.p_cuThreadExchangeStreamCaptureMode(&mode);
    CUcontext popped = nullptr;
    if (pushed == CUDA_SUCCESS) d.p_cuCtxPopCurrent(&popped);
  }

 private:
  std::shared_ptr<const Driver> driver_;
  int ordinal_ = 0;
  CUdevice device_ = 0;
  CUcontext context_ = nullptr;
  Target target_;
  Status cluster_status_;
  void note_failure() const noexcept;
  mutable std::atomic<CUresult> dead_ = CUDA_SUCCESS;  ///< what ended the context
  unsigned forks_;  ///< forks of this process and those it came from, when the context was made
  static thread_local const CudaContext* entered_;  // the context that this thread entered
};

inline CUdeviceptr device_pointer(const void* address) { return reinterpret_cast<CUdeviceptr>(address); }

}  // namespace fuse::runtime
