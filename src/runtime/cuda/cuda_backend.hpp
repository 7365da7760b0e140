// The classes behind make_cuda_backend. Every object holds the context, so any of them may be the last to be
// destroyed.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "runtime/cuda/cublaslt.hpp"
#include "runtime/cuda/cuda.hpp"
#include "runtime/cuda/driver.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/device_graph.hpp"

namespace fuse::runtime {

class CudaQueue final : public Queue {
 public:
  /// Makes a stream that does not wait for the legacy default stream.
  explicit CudaQueue(std::shared_ptr<const CudaContext> context);
  /// Wraps the caller's.
  CudaQueue(std::shared_ptr<const CudaContext> context, CUstream stream);
  ~CudaQueue() override;

  Status synchronize() noexcept override;
  void* native() const noexcept override { return stream_; }
  CUstream stream() const noexcept { return stream_; }

 private:
  std::shared_ptr<const CudaContext> context_;
  CUstream stream_ = nullptr;
  bool owned_ = false;
};

class CudaFunction final : public Function {
 public:
  CUfunction handle = nullptr;
  unsigned block_threads = 0;  ///< as in info; kept beside the handle, for launches
  bool cooperative = false;
  codegen::KernelInfo info;
  std::string label;  ///< "kernel softmax", for messages: made once, so that a launch formats nothing
};

// A kernel's arguments are at most 4 KB on the oldest driver we run on: so many of 8 bytes.
constexpr int max_kernel_arguments = 512;

/// Where the driver reads the arguments of one launch: in those that were given.
class LaunchArguments {
 public:
  LaunchArguments() noexcept {}  // NOLINT: uninitialised on purpose, only what is set is read
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;
  /// An internal Status unless the arguments are the function's and the grid can be launched, or is empty.
  Status set(const CudaFunction&, Dim3 grid, const Argument* arguments, int count) noexcept;
  void** pointers() noexcept { return values_; }

 private:
  void* values_[max_kernel_arguments];
};

class CudaModule final : public Module {
 public:
  /// The images are cubins.
  CudaModule(std::shared_ptr<const CudaContext> context, std::shared_ptr<const Binary> loaded);
  ~CudaModule() override;

  const Function& function(const std::string& name) const override;

 private:
  static Status load_function(const Driver& d, const CudaContext& context, CUmodule module,
                              CudaFunction& function);
  void unload() const;

  std::shared_ptr<const CudaContext> context_;
  std::vector<CUmodule> modules_;
  std::string source_name_;
  std::map<std::string, CudaFunction> functions_;
};

class CudaEvent final : public Event {
 public:
  CudaEvent(std::shared_ptr<const CudaContext> context, bool timed);
  ~CudaEvent() override;

  CUevent handle() const noexcept { return event_; }

 private:
  std::shared_ptr<const CudaContext> context_;
  CUevent event_ = nullptr;
};

class CudaGraph final : public CapturedWork {
 public:
  /// Takes over the graph, on every path.
  CudaGraph(std::shared_ptr<const CudaContext> context, CUgraph graph);
  ~CudaGraph() override;
  Status launch(Queue&) noexcept override;

 private:
  std::shared_ptr<const CudaContext> context_;
  CUgraphExec graph_ = nullptr;
};

class CudaBackend final : public Backend {
 public:
  CudaBackend(std::shared_ptr<const CudaContext> context, const CudaLibraries& libraries);

  int ordinal() const { return context_->ordinal(); }
  const Target& target() const override { return context_->target(); }
  std::string report() const override;

  void* allocate(std::int64_t bytes) override;
  void free(void* address) noexcept override;
  std::unique_ptr<Queue> create_queue() override;
  Status upload(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status download(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status copy(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override;
  Status memset(Queue&, void* to, int byte, std::int64_t bytes) noexcept override;

  std::unique_ptr<Module> load_binary(std::shared_ptr<const Binary>) override;
  std::vector<Fit> fits() const override;
  std::unique_ptr<Gemm> prepare_gemm(const GemmDesc&) override;
  std::int64_t most_gemm_scratch() const noexcept override { return gemm_workspace_limit; }
  std::string gemm_library() const override;
  Status launch(Queue&, const Function&, Dim3 grid, const Argument* arguments, int count) noexcept override;
  Status check_launch(const Function&, Dim3 grid, const Argument* arguments,
                      int count) const noexcept override;
  Status launch_checked(Queue&, const Function&, Dim3 grid, const Argument* arguments, void* const* values,
                        int count) noexcept override;

  Status enter() noexcept override { return context_->enter(); }
  Status leave() noexcept override { return context_->leave(); }
  Status wait(Queue&, const Event&) noexcept override;
  bool captures(Queue&) const noexcept override;
  int gemm_algorithms() const noexcept override { return 4; }
  bool passed(const Event&) noexcept override;
  void finish(const Event&) noexcept override;
  std::unique_ptr<Event> create_event(bool timed = true) override;
  Status record(Queue&, Event&) noexcept override;
  Status elapsed(const Event& from, const Event& to, double& seconds) noexcept override;
  std::string_view clock() const noexcept override { return "CUDA events"; }
  std::unique_ptr<CapturedWork> capture(Queue&, const std::function<Status()>& enqueue) override;
  std::unique_ptr<DeviceGraph> create_graph() override;

  std::unique_ptr<Queue> wrap(CUstream stream);

 private:
  /// The queue's stream, or an internal Status where the queue is another device's.
  Status stream_of(Queue& queue, CUstream& stream) const noexcept;
  template <class F>
  Status transfer(Queue& queue, const char* call, std::int64_t bytes, F&& body) noexcept;

  CudaLibraries libraries_;
  std::shared_ptr<const CudaContext> context_;
  mutable std::mutex mutex_;  ///< guards cublaslt_
  std::shared_ptr<const CublasLt> cublaslt_;
};

/// The stream of a queue that this context made; an internal Status for any other queue.
Status cuda_stream_of(const CudaContext& context, Queue& queue, CUstream& stream) noexcept;

}  // namespace fuse::runtime
