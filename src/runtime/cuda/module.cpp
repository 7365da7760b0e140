// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>

#include "runtime/cuda/cuda_backend.hpp"

namespace fuse::runtime {
namespace {

// A kernel's arguments are at most 4 KB on the oldest driver we run on: so many of 8 bytes.
constexpr int max_arguments = 512;
constexpr std::int64_t max_grid_x = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t max_grid_yz = 65535;

/// An internal Status: the launcher asked for what no kernel of ours takes. Formats without allocating.
template <class... Args>
Status refused(fmt::format_string<Args...> format, Args&&... args) noexcept {
  std::array<char, 400> text;
  const auto end = fmt::format_to_n(text.data(), text.size(), format, std::forward<Args>(args)...);
  return Status(ErrorCode::internal, {text.data(), std::min(end.size, text.size())});
}

}  // namespace

CudaModule::CudaModule(std::shared_ptr<const CudaContext> context, const codegen::Source& source,
                       const Cubin& cubin)
    : context_(std::move(context)), source_name_(source.name) {
  for (const codegen::KernelInfo& info : source.kernels) {
    if (info.params.size() > static_cast<std::size_t>(max_arguments)) {
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::unsupported,
                   .message = fmt::format("kernel {} has {} parameters, a launch takes {}", info.name,
                                          info.params.size(), max_arguments)});
    }
    CudaFunction function;
    function.context = context_.get();
    function.info = info;
    function.label = "kernel " + info.name;
    functions_.emplace(info.name, std::move(function));
  }
  // From here on nothing throws but the last line, after the module was given back.
  const Status status = context_->run([&](const Driver& d) {
    if (Status s =
            d.status("cuModuleLoadData", d.p_cuModuleLoadData(&module_, cubin.image.data()), source_name_);
        !s) {
      module_ = nullptr;
      return s;
    }
    for (auto& [name, function] : functions_) {
      if (Status s = load_function(d, function); !s) return s;
    }
    return Status::ok();
  });
  if (status) return;
  if (module_) context_->release([&](const Driver& d) { d.p_cuModuleUnload(module_); });
  status.throw_if_failed();
}

CudaModule::~CudaModule() {
  context_->release([&](const Driver& d) { d.p_cuModuleUnload(module_); });
}

// All that a first launch would do (load the code, set attributes) happens here: at a launch it would
// synchronise the device, and deadlock with a kernel that spins.
Status CudaModule::load_function(const Driver& d, CudaFunction& function) const {
  const codegen::KernelInfo& info = function.info;
  const std::string_view kernel = function.label;
  if (Status s = d.status("cuModuleGetFunction",
                          d.p_cuModuleGetFunction(&function.handle, module_, info.name.c_str()), kernel);
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
    return refused("kernel {} can run blocks of {} threads (its registers allow no more), not of {}",
                   info.name, threads, info.block_threads);
  }
  if (Status s = d.status(
          "cuFuncGetAttribute",
          d.p_cuFuncGetAttribute(&shared, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function.handle), kernel);
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
  const std::int64_t whole = std::max<std::int64_t>(1, context_->target().shared_per_sm);
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

std::unique_ptr<Module> CudaBackend::load(const codegen::Source& source) {
  check_driver_covers(context_->driver(), nvrtc_library());
  return load_cubin(source, compile_to_cubin(source, target().arch));
}

std::unique_ptr<Module> CudaBackend::load_cubin(const codegen::Source& source, const Cubin& cubin) {
  if (cubin.image.empty()) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = fmt::format("the cubin of {} is empty", source.name)});
  }
  return std::make_unique<CudaModule>(context_, source, cubin);
}

Status CudaBackend::launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                           int count) noexcept {
  const auto* f = dynamic_cast<const CudaFunction*>(&function);
  if (!f || f->context != context_.get()) return refused("the function was loaded on another device");
  const codegen::KernelInfo& info = f->info;
  CUstream stream = nullptr;
  if (Status s = cuda_stream_of(*context_, queue, stream); !s) return s;
  if (count != static_cast<int>(info.params.size())) {
    return refused("kernel {} takes {} arguments, not {}", info.name, info.params.size(), count);
  }
  if (grid.x < 0 || grid.y < 0 || grid.z < 0 || grid.x > max_grid_x || grid.y > max_grid_yz ||
      grid.z > max_grid_yz) {
    return refused("kernel {}: a grid of {} x {} x {} blocks is not launchable", info.name, grid.x, grid.y,
                   grid.z);
  }
  if (grid.x == 0 || grid.y == 0 || grid.z == 0) return Status::ok();

  // Uninitialised on purpose: only `count` of each are written and read.
  union Slot {
    CUdeviceptr address;
    std::int32_t i32;
    std::int64_t i64;
  };
  Slot slots[max_arguments];
  void* pointers[max_arguments];
  for (int i = 0; i < count; ++i) {
    const codegen::KernelParam& param = info.params[static_cast<std::size_t>(i)];
    if (param.kind == codegen::KernelParam::Kind::buffer) {
      slots[i].address = device_pointer(arguments[i].address);
    } else if (param.dtype == DType::i64) {
      slots[i].i64 = arguments[i].value;
    } else if (param.dtype == DType::i32) {
      const std::int64_t value = arguments[i].value;
      if (value != static_cast<std::int32_t>(value)) {
        return refused("kernel {}: extent {} = {} does not fit an i32", info.name, param.name, value);
      }
      slots[i].i32 = static_cast<std::int32_t>(value);
    } else {
      return refused("kernel {}: extent {} is {}, not i32 or i64", info.name, param.name,
                     to_string(param.dtype));
    }
    pointers[i] = &slots[i];
  }
  return context_->run([&](const Driver& d) {
    return d.status(
        "cuLaunchKernel",
        d.p_cuLaunchKernel(f->handle, static_cast<unsigned>(grid.x), static_cast<unsigned>(grid.y),
                           static_cast<unsigned>(grid.z), static_cast<unsigned>(info.block_threads), 1, 1, 0,
                           stream, pointers, nullptr),
        f->label);
  });
}

}  // namespace fuse::runtime
