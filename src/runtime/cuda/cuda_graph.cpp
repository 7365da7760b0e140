// A graph of work as a CUDA graph: kernels, copies and memsets are nodes whose addresses the driver
// exchanges; a GEMM is a child graph of what cuBLASLt enqueues, captured for each set of addresses.
// SPDX-License-Identifier: Apache-2.0
#include <string_view>
#include <vector>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/gemm_captures.hpp"
#include "runtime/device/device_graph.hpp"
#include "runtime/device/hot_path_check.hpp"

namespace fuse::runtime {
namespace {

/// Linear, in the device's memory.
CUDA_MEMCPY3D linear_copy(CUdeviceptr to, CUdeviceptr from, std::int64_t bytes) {
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.srcDevice = from;
  copy.dstDevice = to;
  copy.WidthInBytes = static_cast<std::size_t>(bytes);
  copy.Height = copy.Depth = 1;
  return copy;
}

CUDA_MEMSET_NODE_PARAMS linear_memset(CUdeviceptr to, int byte, std::int64_t bytes) {
  CUDA_MEMSET_NODE_PARAMS memset{};
  memset.dst = to;
  memset.value = static_cast<unsigned>(byte) & 0xff;
  memset.elementSize = 1;
  memset.width = static_cast<std::size_t>(bytes);
  memset.height = 1;
  return memset;
}

class CudaWorkGraph final : public DeviceGraph {
 public:
  explicit CudaWorkGraph(std::shared_ptr<const CudaContext> context)
      : context_(std::move(context)), capture_(context_) {
    stand_ins_.reserve(1);
    const Status made = context_->run_apart([&](const Driver& d) {
      if (Status s = d.status("cuGraphCreate", d.p_cuGraphCreate(&graph_, 0)); !s) return s;
      return stand_in(d, stand_in_bytes);
    });
    if (made) return;
    give_back();
    made.throw_if_failed();
  }

  ~CudaWorkGraph() override { give_back(); }

  void add(const Work& work, std::span<const Node> after) override {
    std::vector<CUgraphNode> before;
    before.reserve(after.size());
    for (const Node node : after) before.push_back(nodes_[node]);
    // Nothing throws while the context is current.
    nodes_.push_back(nullptr);
    captures_.push_back(std::holds_alternative<GemmWork>(work) ? std::make_unique<GemmCaptures>() : nullptr);
    stand_ins_.reserve(stand_ins_.size() + 1);
    const Status status = context_->run_apart([&](const Driver& d) {
      return std::visit([&](const auto& w) { return add(d, w, before, nodes_.back()); }, work);
    });
    status.throw_if_failed();
  }

  void finish() override {
    const Status status = context_->run_apart([&](const Driver& d) {
      if (Status s = d.status("cuGraphInstantiateWithFlags",
                              d.p_cuGraphInstantiateWithFlags(&executable_, graph_, 0));
          !s) {
        return s;
      }
      // What a first launch would do.
      if (Status s = d.status("cuGraphUpload", d.p_cuGraphUpload(executable_, capture_.stream())); !s) {
        return s;
      }
      return d.status("cuStreamSynchronize", d.p_cuStreamSynchronize(capture_.stream()));
    });
    status.throw_if_failed();
  }

  Status update(Node node, const Work& work) noexcept override {
    return std::visit([&](const auto& w) { return update(node, w); }, work);
  }

  Status launch(Queue& queue) noexcept override {
    CUstream stream = nullptr;
    if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
    bool captured = false;
    const Status done = call("cuGraphLaunch", [&](const Driver& d) {
      const CUresult result = d.p_cuGraphLaunch(executable_, stream);
      captured = result == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
      return result;
    });
    if (!captured) return done;
    return {
        ErrorCode::invalid_argument,
        "the stream is being captured, and a workspace in graph mode is launched, which cannot be captured: "
        "capture a run with a workspace in streams mode"};
  }

 private:
  static constexpr std::int64_t stand_in_bytes = 256;

  /// Memory for what is not known yet, for no launch to see.
  Status stand_in(const Driver& d, std::int64_t bytes) {
    CUdeviceptr memory = 0;
    const CUresult made = d.p_cuMemAlloc(&memory, static_cast<std::size_t>(bytes));
    if (made == CUDA_SUCCESS) stand_ins_.push_back(memory);
    return d.status("cuMemAlloc", made);
  }

  /// A launch in flight goes on: the driver keeps what it needs until then.
  void give_back() noexcept {
    context_->release([&](const Driver& d) {
      if (executable_) d.p_cuGraphExecDestroy(executable_);
      if (graph_) d.p_cuGraphDestroy(graph_);
      for (const auto& captures : captures_) {
        if (captures) captures->give_back(d);
      }
      for (const CUdeviceptr memory : stand_ins_) d.p_cuMemFree(memory);
    });
  }

  /// Runs in the context, although the node or the stream names it: without a current one driver 580 ends the
  /// process in the update of a kernel's node.
  template <class F>
  Status call(const char* name, F&& body) noexcept {
    return context_->run([&](const Driver& d) { return d.status(name, body(d)); });
  }

  // Nodes are added with stand-ins for addresses that are not known yet. The driver exchanges the width of a
  // copy, and need not exchange that of a memset.

  Status add(const Driver& d, const KernelWork& work, const std::vector<CUgraphNode>& after,
             CUgraphNode& made) {
    LaunchArguments arguments;
    CUDA_KERNEL_NODE_PARAMS node{};
    if (Status s = fill(node, arguments, work); !s) return s;
    if (Status s =
            d.status("cuGraphAddKernelNode",
                     d.p_cuGraphAddKernelNode(&made, graph_, after.data(), after.size(), &node), label(work));
        !s) {
      return s;
    }
    if (!static_cast<const CudaFunction*>(work.function)->info.cooperative) return Status();
    CUlaunchAttributeValue value{};
    value.cooperative = 1;
    return d.status("cuGraphKernelNodeSetAttribute",
                    d.p_cuGraphKernelNodeSetAttribute(made, CU_LAUNCH_ATTRIBUTE_COOPERATIVE, &value),
                    label(work));
  }

  Status add(const Driver& d, const CopyWork& work, const std::vector<CUgraphNode>& after,
             CUgraphNode& made) {
    const bool known = work.to && work.from;
    const CUDA_MEMCPY3D copy =
        known ? linear_copy(device_pointer(work.to), device_pointer(work.from), work.bytes)
              : linear_copy(stand_ins_.front(), stand_ins_.front() + stand_in_bytes / 2, 1);
    return d.status(
        "cuGraphAddMemcpyNode",
        d.p_cuGraphAddMemcpyNode(&made, graph_, after.data(), after.size(), &copy, context_->handle()));
  }

  Status add(const Driver& d, const MemsetWork& work, const std::vector<CUgraphNode>& after,
             CUgraphNode& made) {
    if (!work.to) {
      if (Status s = stand_in(d, work.bytes); !s) return s;
    }
    const CUdeviceptr to = work.to ? device_pointer(work.to) : stand_ins_.back();
    const CUDA_MEMSET_NODE_PARAMS memset = linear_memset(to, work.byte, work.bytes);
    return d.status(
        "cuGraphAddMemsetNode",
        d.p_cuGraphAddMemsetNode(&made, graph_, after.data(), after.size(), &memset, context_->handle()));
  }

  Status add(const Driver& d, const GemmWork& work, const std::vector<CUgraphNode>& after,
             CUgraphNode& made) {
    GemmWork known = work;
    void* const unknown = reinterpret_cast<void*>(stand_ins_.front());
    for (const void** const address : {&known.a, &known.b, &known.extra}) {
      if (!*address) *address = unknown;
    }
    if (!known.c) known.c = unknown;
    OwnedGraph captured(*context_);
    if (Status s = capture(d, known, captured.graph); !s) return s;
    return d.status("cuGraphAddChildGraphNode",
                    d.p_cuGraphAddChildGraphNode(&made, graph_, after.data(), after.size(), captured.graph));
  }

  Status update(Node node, const KernelWork& work) noexcept {
    LaunchArguments arguments;
    CUDA_KERNEL_NODE_PARAMS params{};
    if (Status s = fill(params, arguments, work); !s) return s;
    return call("cuGraphExecKernelNodeSetParams", [&](const Driver& d) {
      return d.p_cuGraphExecKernelNodeSetParams(executable_, nodes_[node], &params);
    });
  }

  Status update(Node node, const CopyWork& work) noexcept {
    const CUDA_MEMCPY3D copy = linear_copy(device_pointer(work.to), device_pointer(work.from), work.bytes);
    return call("cuGraphExecMemcpyNodeSetParams", [&](const Driver& d) {
      return d.p_cuGraphExecMemcpyNodeSetParams(executable_, nodes_[node], &copy, context_->handle());
    });
  }

  Status update(Node node, const MemsetWork& work) noexcept {
    const CUDA_MEMSET_NODE_PARAMS memset = linear_memset(device_pointer(work.to), work.byte, work.bytes);
    return call("cuGraphExecMemsetNodeSetParams", [&](const Driver& d) {
      return d.p_cuGraphExecMemsetNodeSetParams(executable_, nodes_[node], &memset, context_->handle());
    });
  }

  Status update(Node node, const GemmWork& work) noexcept {
    if (CUgraph const known = captures_[node]->use(work)) return exchange(node, known);
    return context_->run([&](const Driver& d) {
      OwnedGraph captured(*context_);
      if (Status s = capture(d, work, captured.graph); !s) return s;
      if (Status s = exchange(node, captured.graph); !s) return s;
      // What it replaces is destroyed instead.
      captured.graph = captures_[node]->keep(work, captured.graph);
      return Status();
    });
  }

  /// A driver refuses a child graph with other nodes, or with what it cannot exchange in them: cuBLASLt may
  /// launch another kernel for other addresses, or one with clusters.
  Status exchange(Node node, CUgraph child) noexcept {
    bool refused = false;
    const Status done = call("cuGraphExecChildGraphNodeSetParams", [&](const Driver& d) {
      const CUresult result = d.p_cuGraphExecChildGraphNodeSetParams(executable_, nodes_[node], child);
      refused = result == CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE || result == CUDA_ERROR_NOT_SUPPORTED ||
                result == CUDA_ERROR_INVALID_VALUE;
      return result;
    });
    return refused ? Status(ErrorCode::unsupported, done.message()) : done;
  }

  /// What cuBLASLt enqueues for the GEMM. Relaxed: the capture is of this object's stream alone, and holds up
  /// nobody else's calls.
  Status capture(const Driver& d, const GemmWork& work, CUgraph& captured) noexcept {
    if (Status s = d.status("cuStreamBeginCapture",
                            d.p_cuStreamBeginCapture(capture_.stream(), CU_STREAM_CAPTURE_MODE_RELAXED));
        !s) {
      return s;
    }
    const Status enqueued = work.gemm->run(capture_, work.a, work.b, work.c, work.scratch, work.extra);
    // It ends on every path: a stream left in it would refuse all later work.
    const Status ended = d.status("cuStreamEndCapture", d.p_cuStreamEndCapture(capture_.stream(), &captured));
    return enqueued ? ended : enqueued;
  }

  Status fill(CUDA_KERNEL_NODE_PARAMS& node, LaunchArguments& arguments, const KernelWork& work) noexcept {
    if (work.function->owner != context_.get()) {
      return {ErrorCode::internal, "the function was loaded on another device"};
    }
    const auto& function = *static_cast<const CudaFunction*>(work.function);
    if (Status s = arguments.set(function, work.grid, work.arguments, work.count); !s) return s;
    node.func = function.handle;
    node.gridDimX = static_cast<unsigned>(work.grid.x);
    node.gridDimY = static_cast<unsigned>(work.grid.y);
    node.gridDimZ = static_cast<unsigned>(work.grid.z);
    node.blockDimX = static_cast<unsigned>(function.info.block_threads);
    node.blockDimY = node.blockDimZ = 1;
    node.kernelParams = arguments.pointers();
    return Status();
  }

  static std::string_view label(const KernelWork& work) {
    return static_cast<const CudaFunction*>(work.function)->label;
  }

  std::shared_ptr<const CudaContext> context_;
  CudaQueue capture_;
  CUgraph graph_ = nullptr;  ///< kept: its nodes name those of the executable
  CUgraphExec executable_ = nullptr;
  std::vector<CUgraphNode> nodes_;
  /// For each node, its captures; null where it is no GEMM.
  std::vector<std::unique_ptr<GemmCaptures>> captures_;
  std::vector<CUdeviceptr> stand_ins_;  ///< the first has stand_in_bytes
};

}  // namespace

std::unique_ptr<DeviceGraph> CudaBackend::create_graph() {
  contract::forbid("makes a graph");
  return std::make_unique<CudaWorkGraph>(context_);
}

}  // namespace fuse::runtime
