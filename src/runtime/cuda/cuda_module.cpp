// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <limits>

#include "base/formatted_status.hpp"
#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/cuda/largest_cluster.hpp"
#include "target/residency.hpp"

namespace fuse::runtime {
namespace {

constexpr std::int64_t max_grid_x = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t max_grid_yz = 65535;

constexpr const char* compile_here =
    "compile for the device that runs it: its own limits are planned for then";

Status foreign_function() noexcept {
  return {ErrorCode::internal, "the function was loaded on another device"};
}

static_assert(std::endian::native == std::endian::little, "an i32 is the first half of Argument::value");

/// What is wrong with a launch, wherever its buffers are.
Status check(const codegen::KernelInfo& info, Dim3 grid, const Argument* arguments, int count) noexcept {
  if (count != static_cast<int>(info.params.size())) {
    return status(ErrorCode::internal, "kernel {} takes {} arguments, not {}", info.name, info.params.size(),
                  count);
  }
  if (grid.x < 0 || grid.y < 0 || grid.z < 0 || grid.x > max_grid_x || grid.y > max_grid_yz ||
      grid.z > max_grid_yz) {
    return status(ErrorCode::internal, "kernel {}: a grid of {} x {} x {} blocks is not launchable",
                  info.name, grid.x, grid.y, grid.z);
  }
  if (info.cluster > 1 && grid.x % info.cluster != 0) {
    return status(ErrorCode::internal,
                  "kernel {}: a grid of {} blocks in x is no whole number of clusters of {}", info.name,
                  grid.x, info.cluster);
  }
  for (int i = 0; i < count; ++i) {
    const codegen::KernelParam& param = info.params[static_cast<std::size_t>(i)];
    if (param.kind == codegen::KernelParam::Kind::buffer || param.dtype == DType::i64) continue;
    const std::int64_t value = arguments[i].value;
    if (param.dtype != DType::i32) {
      return status(ErrorCode::internal, "kernel {}: extent {} is {}, not i32 or i64", info.name, param.name,
                    to_string(param.dtype));
    }
    if (value != static_cast<std::int32_t>(value)) {
      return status(ErrorCode::internal, "kernel {}: extent {} = {} does not fit an i32", info.name,
                    param.name, value);
    }
  }
  return Status();
}

}  // namespace

void check_clusters(const std::vector<codegen::KernelInfo>& kernels, const Target& target) {
  for (const codegen::KernelInfo& info : kernels) {
    if (info.cluster <= target.max_cluster) continue;
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::unsupported,
                 .message = fmt::format("kernel {}: cluster of {} exceeds the limit of {} ({})", info.name,
                                        info.cluster, target.max_cluster, target.name),
                 .hint = compile_here});
  }
}

CudaModule::CudaModule(std::shared_ptr<const CudaContext> context, std::shared_ptr<const Binary> loaded)
    : Module(std::move(loaded)), context_(std::move(context)), source_name_(binary->name) {
  std::vector<CudaFunction*> functions;  // in the source's order
  for (const codegen::KernelInfo& info : binary->kernels) {
    if (info.params.size() > static_cast<std::size_t>(max_kernel_arguments)) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::unsupported,
                   .message = fmt::format("kernel {} has {} parameters, a launch takes {}", info.name,
                                          info.params.size(), max_kernel_arguments)});
    }
    CudaFunction function;
    function.owner = context_.get();
    function.block_threads = static_cast<unsigned>(info.block_threads);
    function.cooperative = info.cooperative;
    function.info = info;
    function.label = "kernel " + info.name;
    functions.push_back(&functions_.emplace(info.name, std::move(function)).first->second);
  }
  modules_.reserve(binary->images.size());
  // From here on nothing throws but the last line, after the modules were given back.
  const Status status = context_->run_apart([&](const Driver& d) {
    std::size_t next = 0;
    for (const Binary::Image& cubin : binary->images) {
      CUmodule module = nullptr;
      if (Status s =
              d.status("cuModuleLoadData", d.p_cuModuleLoadData(&module, cubin.bytes.data()), source_name_);
          !s) {
        return s;
      }
      modules_.push_back(module);
      const std::size_t end = next + cubin.kernels;
      for (; next < end; ++next) {
        if (Status s = load_function(d, *context_, module, *functions[next]); !s) return s;
      }
    }
    return Status();
  });
  if (status) return;
  unload();
  if (status.code() == ErrorCode::unsupported) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = status.code(),
                 .message = std::string(status.message()),
                 .hint = compile_here});
  }
  status.throw_if_failed();
}

namespace {

/// Whether the device can hold a cluster of the kernel, by the driver that knows its groups of
/// multiprocessors.
Status check_cluster(const Driver& d, const CudaFunction& function, const Target& target) noexcept {
  const codegen::KernelInfo& info = function.info;
  CUlaunchConfig launch{};
  launch.gridDimX = static_cast<unsigned>(info.cluster);
  launch.gridDimY = launch.gridDimZ = 1;
  launch.blockDimX = function.block_threads;
  launch.blockDimY = launch.blockDimZ = 1;
  int clusters = 0;  // their size stands in the kernel
  if (Status s =
          d.status("cuOccupancyMaxActiveClusters",
                   d.p_cuOccupancyMaxActiveClusters(&clusters, function.handle, &launch), function.label);
      !s) {
    return s;
  }
  if (clusters > 0) return Status();
  return status(ErrorCode::unsupported,
                "kernel {}: {} cannot hold a cluster of {} blocks of {} threads, {} registers each",
                info.name, target.name, info.cluster, info.block_threads, function.registers);
}

}  // namespace

CudaModule::~CudaModule() { unload(); }

void CudaModule::unload() const {
  if (modules_.empty()) return;
  context_->wait_for_all();  // a run may be in flight whose kernels these are
  context_->release([&](const Driver& d) {
    for (CUmodule module : modules_) d.p_cuModuleUnload(module);
  });
}

// All that a first launch would do (load the code, set attributes) happens here: at a launch it would
// synchronise the device, and deadlock with a cooperative kernel.
Status CudaModule::load_function(const Driver& d, const CudaContext& context, CUmodule module,
                                 CudaFunction& function) {
  const codegen::KernelInfo& info = function.info;
  const std::string_view kernel = function.label;
  if (Status s = d.status("cuModuleGetFunction",
                          d.p_cuModuleGetFunction(&function.handle, module, info.name.c_str()), kernel);
      !s) {
    return s;
  }
#if CUDA_VERSION >= 12040
  if (d.p_cuFuncLoad) {
    if (Status s = d.status("cuFuncLoad", d.p_cuFuncLoad(function.handle), kernel); !s) return s;
  }
#endif
  int threads = 0, shared = 0;
  if (Status s = d.status(
          "cuFuncGetAttribute",
          d.p_cuFuncGetAttribute(&threads, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function.handle), kernel);
      !s) {
    return s;
  }
  if (threads < info.block_threads) {
    return status(ErrorCode::internal,
                  "kernel {} can run blocks of {} threads (its registers allow no more), not of {}",
                  info.name, threads, info.block_threads);
  }
  if (Status s = d.status(
          "cuFuncGetAttribute",
          d.p_cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.handle), kernel);
      !s) {
    return s;
  }
  if (Status s = d.status(
          "cuFuncGetAttribute",
          d.p_cuFuncGetAttribute(&function.registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function.handle), kernel);
      !s) {
    return s;
  }
  if (info.cluster > portable_cluster) {
    if (Status s = d.status(
            "cuFuncSetAttribute",
            d.p_cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED, 1),
            kernel);
        !s) {
      return s;
    }
  }
  if (info.cluster > 1) {
    if (Status s = check_cluster(d, function, context.target()); !s) return s;
  }
  if (shared == 0 && !function.cooperative) return Status();

  int blocks = 0;
  if (Status s = d.status(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          d.p_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function.handle, info.block_threads, 0),
          kernel);
      !s) {
    return s;
  }
  function.blocks_per_sm = function.cooperative ? blocks : 0;
  if (shared == 0) return Status();

  // Shared memory for as many blocks as there can be; the rest of it stays cache.
  const schedule::Residency launch{
      .threads = info.block_threads, .registers = function.registers, .shared_bytes = shared};
  const std::int64_t wanted = blocks * share_of_block(launch, context.target()).shared;
  const std::int64_t whole = std::max<std::int64_t>(1, context.target().shared_per_sm);
  const std::int64_t percent = std::min<std::int64_t>(100, (wanted * 100 + whole - 1) / whole);
  return d.status("cuFuncSetAttribute",
                  d.p_cuFuncSetAttribute(function.handle, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
                                         static_cast<int>(percent)),
                  kernel);
}

const Function& CudaModule::function(const std::string& name) const {
  if (const auto at = functions_.find(name); at != functions_.end()) return at->second;
  std::string known;
  for (const auto& [other, function] : functions_) known += (known.empty() ? "" : ", ") + other;
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::unknown_name,
               .message = fmt::format("source {} has no kernel {}; it has {}", source_name_, name,
                                      known.empty() ? "none" : known)});
}

std::unique_ptr<Module> CudaBackend::load_binary(std::shared_ptr<const Binary> binary) {
  check_clusters(binary->kernels, target());
  std::size_t kernels = 0;
  for (const Binary::Image& cubin : binary->images) {
    kernels += cubin.kernels;
    if (!cubin.bytes.empty()) continue;
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the cubin of {} is empty", binary->name)});
  }
  if (kernels != binary->kernels.size()) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the cubins of {} have {} kernels of {}", binary->name, kernels,
                                        binary->kernels.size())});
  }
  return std::make_unique<CudaModule>(context_, std::move(binary));
}

std::vector<Fit> CudaBackend::fits() const {
  std::vector<Fit> fits = fits_of(target());
  fits.push_back({"device", "cuda"});
  return fits;
}

Status LaunchArguments::set(const CudaFunction& function, Dim3 grid, const Argument* arguments,
                            int count) noexcept {
  if (Status bad = check(function.info, grid, arguments, count); !bad) return bad;
  for (int i = 0; i < count; ++i) {
    const bool buffer =
        function.info.params[static_cast<std::size_t>(i)].kind == codegen::KernelParam::Kind::buffer;
    const void* const value = buffer ? static_cast<const void*>(&arguments[i].address) : &arguments[i].value;
    values_[i] = const_cast<void*>(value);  // the driver reads it only
  }
  return Status();
}

Status CudaBackend::launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                           int count) noexcept {
  if (function.owner != context_.get()) return foreign_function();
  LaunchArguments values;
  if (Status bad = values.set(static_cast<const CudaFunction&>(function), grid, arguments, count); !bad) {
    return bad;
  }
  return launch_checked(queue, function, grid, arguments, values.pointers(), count);
}

Status CudaBackend::check_launch(const Function& function, Dim3 grid, const Argument* arguments,
                                 int count) const noexcept {
  if (function.owner != context_.get()) return foreign_function();
  return check(static_cast<const CudaFunction&>(function).info, grid, arguments, count);
}

// This, and no more, is our cost of a launch in a run.
Status CudaBackend::launch_checked(Queue& queue, const Function& function, Dim3 grid, const Argument*,
                                   void* const* values, int) noexcept {
  const auto& f = static_cast<const CudaFunction&>(function);
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status();
  const auto x = static_cast<unsigned>(grid.x), y = static_cast<unsigned>(grid.y),
             z = static_cast<unsigned>(grid.z);
  void** const read_only = const_cast<void**>(values);
  return context_->run([&](const Driver& d) {
    if (f.cooperative) {  // the driver refuses a grid that the device cannot hold at once
      return d.status(
          "cuLaunchCooperativeKernel",
          d.p_cuLaunchCooperativeKernel(f.handle, x, y, z, f.block_threads, 1, 1, 0, stream, read_only),
          f.label);
    }
    return d.status(
        "cuLaunchKernel",
        d.p_cuLaunchKernel(f.handle, x, y, z, f.block_threads, 1, 1, 0, stream, read_only, nullptr), f.label);
  });
}

}  // namespace fuse::runtime
