// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <new>

#include "base/formatted_status.hpp"
#include "ir/graph/hash.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/cpu/cores/worker_pool.hpp"
#include "runtime/cpu/cpu.hpp"
#include "runtime/cpu/cpu_module.hpp"
#include "runtime/cpu/gemm/cpu_gemm.hpp"
#include "runtime/cpu/grain.hpp"
#include "runtime/cpu/host_memory.hpp"
#include "runtime/cpu/scratch.hpp"
#include "runtime/device/host_gemm.hpp"
#include "runtime/device/toolchain.hpp"

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace fuse::runtime {
namespace cpu {
namespace {

constexpr int most_threads_of_device = 1024;

/// Stores that went past the caches come before what this thread stores next.
void fence_stores() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#else
  std::atomic_thread_fence(std::memory_order_seq_cst);
#endif
}

/// Every operation has finished when it returns.
class CpuQueue final : public Queue {
 public:
  using Queue::Queue;
  Status synchronize() noexcept override { return {}; }
};

Status check_grid(const codegen::KernelInfo& info, const Dim3& grid, std::int64_t& blocks) noexcept {
  if (grid.x < 0 || grid.y < 0 || grid.z < 0) {
    return status(ErrorCode::invalid_argument, "{}: negative grid {} x {} x {}", info.name, grid.x, grid.y,
                  grid.z);
  }
  if (__builtin_mul_overflow(grid.x, grid.y, &blocks) || __builtin_mul_overflow(blocks, grid.z, &blocks)) {
    return status(ErrorCode::invalid_argument, "{}: a grid of {} x {} x {} has 2^63 blocks or more",
                  info.name, grid.x, grid.y, grid.z);
  }
  return {};
}

Status check_extent(const codegen::KernelInfo& info, std::size_t i, const Argument& argument) noexcept {
  const codegen::KernelParam& param = info.params[i];
  if (param.dtype != DType::i32 || argument.value == static_cast<std::int32_t>(argument.value)) return {};
  return status(ErrorCode::invalid_argument, "{}: extent '{}' = {} does not fit its 32 bits", info.name,
                param.name, argument.value);
}

Status check_buffer(const codegen::KernelInfo& info, std::size_t i, const Argument& argument) noexcept {
  const codegen::KernelParam& param = info.params[i];
  if (argument.bytes == 0 || reinterpret_cast<std::uintptr_t>(argument.address) % size_of(param.dtype) == 0)
    return {};
  return status(ErrorCode::misaligned, "{}: argument '{}' at {} is not aligned to {} bytes", info.name,
                param.name, argument.address, size_of(param.dtype));
}

Status check_kernel(const codegen::KernelInfo& info, int count) noexcept {
  if (count != static_cast<int>(info.params.size()) || count > max_arguments) {
    return status(ErrorCode::invalid_argument, "{}: {} arguments for {} parameters", info.name, count,
                  info.params.size());
  }
  if (!info.cooperative && info.cluster == 1) return {};
  return status(ErrorCode::internal, "{}: blocks of the cpu device cannot wait for each other", info.name);
}

/// The arguments as a kernel takes them, and the bytes of its buffers.
struct Bound {
  explicit Bound(const codegen::KernelInfo& info, const Argument* arguments) noexcept {
    for (std::size_t i = 0; i < info.params.size(); ++i) {
      const bool buffer = info.params[i].kind == codegen::KernelParam::Kind::buffer;
      values[i] = buffer ? reinterpret_cast<std::uintptr_t>(arguments[i].address)
                         : static_cast<unsigned long long>(arguments[i].value);
      if (buffer) traffic += arguments[i].bytes;
    }
  }
  /// Whether a result lies where an operand does: the caches have its lines when it is written.
  bool writes_over_operands(const codegen::KernelInfo& info) const noexcept {
    const auto is = [&](std::size_t i, bool written) {
      return info.params[i].kind == codegen::KernelParam::Kind::buffer && info.params[i].written == written;
    };
    for (std::size_t to = 0; to < info.params.size(); ++to) {
      for (std::size_t from = 0; is(to, true) && from < info.params.size(); ++from) {
        if (is(from, false) && values[from] == values[to]) return true;
      }
    }
    return false;
  }
  std::array<unsigned long long, max_arguments> values;  // only those of the parameters are set
  std::int64_t traffic = 0;
};

class CpuBackend final : public Backend {
 public:
  CpuBackend(const CpuOptions& options, const Target& target, std::shared_ptr<const Toolchain> toolchain)
      : Backend(std::move(toolchain)),
        options_(options),
        target_(target),
        pool_(std::make_shared<WorkerPool>(WorkerPool::Options{
            .threads = options.threads > 0 ? options.threads
                       : options.executor  ? most_threads_of_device
                                           : std::min(this_machine().cores, most_threads_of_device),
            .pin = options.pin,
            .executor = options.executor})),
        scratch_(pool_->helpers()) {}

  const Target& target() const override { return target_; }
  std::string report() const override;
  std::vector<Fit> fits() const override;

  void* allocate(std::int64_t bytes) override { return allocate_memory(bytes); }
  void free(void* address) noexcept override { free_memory(address); }
  std::unique_ptr<Queue> create_queue() override { return std::make_unique<CpuQueue>(this); }
  Status upload(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept override {
    return copy(queue, to, from, bytes);
  }
  Status download(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept override {
    return copy(queue, to, from, bytes);
  }
  Status copy(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept override {
    return queue.owner == this ? copy_memory(*pool_, to, from, bytes) : foreign_queue();
  }
  Status memset(Queue& queue, void* to, int byte, std::int64_t bytes) noexcept override {
    return queue.owner == this ? set_memory(*pool_, to, byte, bytes) : foreign_queue();
  }

  std::unique_ptr<Module> load_binary(std::shared_ptr<const Binary> binary) override;
  std::unique_ptr<Gemm> prepare_gemm(const GemmDesc& desc) override {
    return make_cpu_gemm(desc, pool_, this, kernels());
  }
  std::int64_t most_gemm_scratch() const noexcept override { return most_cpu_gemm_scratch(*pool_); }
  std::int64_t packed_gemm_bytes(const GemmDesc& desc) const noexcept override {
    return packed_cpu_gemm_bytes(desc, kernels());
  }
  bool prefers_packed_gemm(const GemmDesc& desc) const noexcept override {
    return prefers_packed_cpu_gemm(desc, kernels());
  }
  bool reads_backwards(const GemmDesc& desc) const noexcept override {
    return cpu_gemm_reads_backwards(desc, kernels());
  }
  Status pack_gemm(Queue& queue, const GemmDesc& desc, const void* b, void* to) noexcept override {
    if (queue.owner != this) return foreign_queue();
    try {
      return pack_cpu_gemm(desc, *pool_, b, to, kernels());
    } catch (const std::bad_alloc&) {
      return {ErrorCode::out_of_memory, "the host ran out of memory"};
    }
  }
  Status launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                int count) noexcept override;
  Status check_launch(const Function& function, Dim3 grid, const Argument* arguments,
                      int count) const noexcept override;
  Status launch_checked(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                        void* const* values, int count) noexcept override;

 private:
  const GemmKernels& kernels() const {
    const GemmKernels* const found = gemm_kernels_of(target_.machine);
    return found ? *found : *gemm_kernels_of("portable");
  }
  Status run(const Kernel& kernel, std::int64_t blocks, const Argument* arguments);

  const CpuOptions options_;
  const Target target_;
  const std::shared_ptr<WorkerPool> pool_;  // GEMMs hold it too
  Scratch scratch_;
};

std::string CpuBackend::report() const {
  const Machine& machine = this_machine();
  const int threads = pool_->threads();
  return fmt::format("cpu {}: {}, {} thread{}{}\n  caches: {} KiB and {} KiB per core, {} KiB shared\n{}\n{}",
                     machine.model, target_.machine, threads, threads == 1 ? "" : "s",
                     pool_->has_executor() ? " of the application"
                     : options_.pin        ? ", pinned"
                                           : "",
                     machine.l1d_bytes >> 10, machine.l2_bytes >> 10, machine.last_level_bytes >> 10,
                     toolchain() ? toolchain()->report() : "compiler: none in this library",
                     host_gemm_report());
}

std::vector<Fit> CpuBackend::fits() const {
  std::vector<Fit> fits = fits_of(target_);
  fits.push_back({"device", "cpu"});
  fits.push_back({"machine", target_.machine});
  fits.push_back({"kernel interface", fmt::format("{:016x}", ir::Hasher().add(abi_text).value())});
  return fits;
}

std::unique_ptr<Module> CpuBackend::load_binary(std::shared_ptr<const Binary> binary) {
  std::int64_t most = 0;
  for (const codegen::KernelInfo& kernel : binary->kernels) most = std::max(most, kernel.shared_bytes);
  auto module = std::make_unique<CpuModule>(std::move(binary));
  try {
    scratch_.reserve(most);  // so that launches allocate nothing
  } catch (const std::bad_alloc&) {
    throw Error(
        {.kind = ErrorKind::runtime,
         .code = ErrorCode::out_of_memory,
         .message = fmt::format("the cpu device has no {} bytes of scratch memory for each thread", most)});
  }
  return module;
}

Status CpuBackend::check_launch(const Function& function, Dim3 grid, const Argument* arguments,
                                int count) const noexcept {
  const Kernel* const kernel = kernel_of(function);
  if (!kernel) return {ErrorCode::internal, "launch of another device's function"};
  const codegen::KernelInfo& info = kernel->info;
  std::int64_t blocks = 0;
  if (Status s = check_kernel(info, count); !s) return s;
  if (Status s = check_grid(info, grid, blocks); !s) return s;
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (info.params[i].kind == codegen::KernelParam::Kind::buffer) continue;
    if (Status s = check_extent(info, i, arguments[i]); !s) return s;
  }
  return {};
}

Status CpuBackend::launch(Queue& queue, const Function& function, Dim3 grid, const Argument* arguments,
                          int count) noexcept {
  if (Status s = check_launch(function, grid, arguments, count); !s) return s;
  return launch_checked(queue, function, grid, arguments, nullptr, count);
}

Status CpuBackend::launch_checked(Queue& queue, const Function& function, Dim3 grid,
                                  const Argument* arguments, void* const*, int) noexcept {
  if (queue.owner != this) return foreign_queue();
  const Kernel* const kernel = kernel_of(function);
  if (!kernel) return {ErrorCode::internal, "launch of another device's function"};
  const codegen::KernelInfo& info = kernel->info;
  for (std::size_t i = 0; i < info.params.size(); ++i) {
    if (info.params[i].kind != codegen::KernelParam::Kind::buffer) continue;
    if (Status s = check_buffer(info, i, arguments[i]); !s) return s;
  }
  try {
    return run(*kernel, grid.x * grid.y * grid.z, arguments);
  } catch (const std::bad_alloc&) {
    return {ErrorCode::out_of_memory, "the host ran out of memory"};
  } catch (const std::exception& e) {
    return {ErrorCode::internal, e.what()};
  }
}

Status CpuBackend::run(const Kernel& kernel, std::int64_t blocks, const Argument* arguments) {
  const Bound bound(kernel.info, arguments);
  Grain grain = grain_of(blocks, bound.traffic,
                         last_level_share(this_machine().last_level_bytes, this_machine().cores));
  if (grain.stream > 0 && bound.writes_over_operands(kernel.info)) grain.stream = 0;
  if (grain.chunks == 0) return {};
  const Scratch::Loan scratch(scratch_, kernel.info.shared_bytes);
  return pool_->run(grain.chunks, [&](std::int64_t chunk, int thread) noexcept {
    Call call{};
    call.arguments = bound.values.data();
    call.first = chunk * grain.blocks_of_chunk;
    call.last = std::min<std::int64_t>(blocks - call.first, grain.blocks_of_chunk) + call.first;
    call.scratch = scratch.of(thread);
    call.stream = grain.stream;
    // The calling thread goes forwards, and the others share the chunks from the back on.
    call.next = thread == 0
                    ? call.last
                    : std::max<std::int64_t>(call.first - pool_->helpers() * grain.blocks_of_chunk, 0);
    kernel.entry(&call);
    if (grain.stream > 0) fence_stores();
  });
}

}  // namespace
}  // namespace cpu

std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, const Target& target,
                                          std::shared_ptr<const Toolchain> toolchain) {
  if (options.threads < 0 || options.threads > cpu::most_threads_of_device) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the cpu device cannot run on {} threads", options.threads),
         .hint = fmt::format("0 takes as many as there are cores that the process may use; at most {}",
                             cpu::most_threads_of_device)});
  }
  return std::make_unique<cpu::CpuBackend>(options, target, std::move(toolchain));
}

}  // namespace fuse::runtime
