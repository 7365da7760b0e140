// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/cuda/cuda_backend.hpp"
#include "runtime/formatted_status.hpp"

namespace fuse::runtime {
namespace {

constexpr std::int64_t max_grid_x = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t max_grid_yz = 65535;

/// Inlined on purpose: it is what a launch costs us.
[[gnu::always_inline]] inline Status pack(const codegen::KernelInfo& info, Dim3 grid,
                                          const Argument* arguments, int count, LaunchArguments::Slot* slots,
                                          void** pointers) noexcept {
  if (count != static_cast<int>(info.params.size())) {
    return status(ErrorCode::internal, "kernel {} takes {} arguments, not {}", info.name, info.params.size(),
                  count);
  }
  if (grid.x < 0 || grid.y < 0 || grid.z < 0 || grid.x > max_grid_x || grid.y > max_grid_yz ||
      grid.z > max_grid_yz) {
    return status(ErrorCode::internal, "kernel {}: a grid of {} x {} x {} blocks is not launchable",
                  info.name, grid.x, grid.y, grid.z);
  }
  for (int i = 0; i < count; ++i) {
    const codegen::KernelParam& param = info.params[static_cast<std::size_t>(i)];
    if (param.kind == codegen::KernelParam::Kind::buffer) {
      slots[i].address = device_pointer(arguments[i].address);
    } else if (param.dtype == DType::i64) {
      slots[i].i64 = arguments[i].value;
    } else if (param.dtype == DType::i32) {
      const std::int64_t value = arguments[i].value;
      if (value != static_cast<std::int32_t>(value)) {
        return status(ErrorCode::internal, "kernel {}: extent {} = {} does not fit an i32", info.name,
                      param.name, value);
      }
      slots[i].i32 = static_cast<std::int32_t>(value);
    } else {
      return status(ErrorCode::internal, "kernel {}: extent {} is {}, not i32 or i64", info.name, param.name,
                    to_string(param.dtype));
    }
    pointers[i] = &slots[i];
  }
  return Status::ok();
}

}  // namespace

CudaModule::CudaModule(std::shared_ptr<const CudaContext> context, const codegen::Source& source,
                       const std::vector<Cubin>& cubins)
    : context_(std::move(context)), source_name_(source.name) {
  std::vector<CudaFunction*> functions;  // in the source's order
  for (const codegen::KernelInfo& info : source.kernels) {
    if (info.params.size() > static_cast<std::size_t>(max_kernel_arguments)) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::unsupported,
                   .message = fmt::format("kernel {} has {} parameters, a launch takes {}", info.name,
                                          info.params.size(), max_kernel_arguments)});
    }
    CudaFunction function;
    function.owner = context_.get();
    function.info = info;
    function.label = "kernel " + info.name;
    functions.push_back(&functions_.emplace(info.name, std::move(function)).first->second);
  }
  modules_.reserve(cubins.size());
  // From here on nothing throws but the last line, after the modules were given back.
  const Status status = context_->run_apart([&](const Driver& d) {
    std::size_t next = 0;
    for (const Cubin& cubin : cubins) {
      CUmodule module = nullptr;
      if (Status s =
              d.status("cuModuleLoadData", d.p_cuModuleLoadData(&module, cubin.image.data()), source_name_);
          !s) {
        return s;
      }
      modules_.push_back(module);
      const std::size_t end = &cubin == &cubins.back() ? functions.size() : next + cubin.kernels.size();
      for (; next < end; ++next) {
        if (Status s = load_function(d, *context_, module, *functions[next]); !s) return s;
      }
    }
    return Status::ok();
  });
  if (status) return;
  unload();
  status.throw_if_failed();
}

CudaModule::~CudaModule() { unload(); }

void CudaModule::unload() const {
  if (modules_.empty()) return;
  context_->wait_for_all();  // a run may be in flight whose kernels these are
  context_->release([&](const Driver& d) {
    for (CUmodule module : modules_) d.p_cuModuleUnload(module);
  });
}

// All that a first launch would do (load the code, set attributes) happens here: at a launch it would
// synchronise the device, and deadlock with a kernel that spins.
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
  if (shared == 0) return Status::ok();

  // Shared memory for as many blocks as threads and registers allow; the rest of it stays cache.
  int blocks = 0;
  if (Status s = d.status(
          "cuOccupancyMaxActiveBlocksPerMultiprocessor",
          d.p_cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function.handle, info.block_threads, 0),
          kernel);
      !s) {
    return s;
  }
  constexpr std::int64_t reserved = 1024;  // a block's, by the driver
  const std::int64_t wanted = blocks * (shared + reserved);
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

std::unique_ptr<Module> CudaBackend::load(const codegen::Source& source, int threads) {
  check_driver_covers(context_->driver(), nvrtc_library());
  return load_cubins(source, compile_to_cubins(source, target().arch, threads));
}

std::string CudaBackend::build_key() const {
  const auto [major, minor] = nvrtc_version();
  std::string key = fmt::format("nvrtc {}.{}", major, minor);
  for (const std::string& option : nvrtc_options(target().arch, 1)) key += ' ' + option;
  return key;
}

std::unique_ptr<Module> CudaBackend::load_cubins(const codegen::Source& source,
                                                 const std::vector<Cubin>& cubins) {
  for (const Cubin& cubin : cubins) {
    if (!cubin.image.empty()) continue;
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the cubin of {} is empty", source.name)});
  }
  return std::make_unique<CudaModule>(context_, source, cubins);
}

Status LaunchArguments::set(const CudaFunction& function, Dim3 grid, const Argument* arguments,
                            int count) noexcept {
  return pack(function.info, grid, arguments, count, slots_, pointers_);
}

Status CudaBackend::launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                           int count) noexcept {
  if (function.owner != context_.get())
    return status(ErrorCode::internal, "the function was loaded on another device");
  const auto* f = static_cast<const CudaFunction*>(&function);
  const codegen::KernelInfo& info = f->info;
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  // Uninitialised on purpose: only what is set is read.
  LaunchArguments::Slot slots[max_kernel_arguments];
  void* pointers[max_kernel_arguments];
  if (Status s = pack(info, grid, arguments, count, slots, pointers); !s) return s;
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::ok();
  return context_->run([&](const Driver& d) {
    if (info.spins) {  // the driver refuses a grid that the device cannot hold at once
      return d.status(
          "cuLaunchCooperativeKernel",
          d.p_cuLaunchCooperativeKernel(f->handle, static_cast<unsigned>(grid.x),
                                        static_cast<unsigned>(grid.y), static_cast<unsigned>(grid.z),
                                        static_cast<unsigned>(info.block_threads), 1, 1, 0, stream, pointers),
          f->label);
    }
    return d.status(
        "cuLaunchKernel",
        d.p_cuLaunchKernel(f->handle, static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                           static_cast<unsigned>(grid.z), static_cast<unsigned>(info.block_threads), 1, 1, 0,
                           stream, pointers, nullptr),
        f->label);
  });
}

}  // namespace fuse::runtime
