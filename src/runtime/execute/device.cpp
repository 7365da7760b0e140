// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <fuse/device.hpp>
#include <fuse/memory.hpp>
#include <span>

#include "base/access.hpp"
#include "base/quoting.hpp"
#include "runtime/cpu/cores/machine.hpp"
#include "runtime/cpu/cpu.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/device/toolchain.hpp"
#if FUSE_COMPILER_HAS_EMULATED
#include "runtime/emulated/emulated.hpp"
#endif
#if FUSE_COMPILER_HAS_CUDA
#include "runtime/cuda/cuda.hpp"
#endif

namespace fuse {
inline namespace v0 {
namespace {

/// `target`: in place of the profile's, where it is not null.
std::shared_ptr<runtime::Backend> open_emulated([[maybe_unused]] const Device::Emulated& options,
                                                [[maybe_unused]] const Target* target = nullptr) {
#if FUSE_COMPILER_HAS_EMULATED
  if (options.threads < 0) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the emulated device cannot run on {} threads", options.threads),
                 .hint = "0 takes one a core"});
  }
  if (options.optimization < 0 || options.optimization > 3) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the emulated device has no optimization level {}", options.optimization),
         .hint = "0 to 3, as the C++ compiler's -O"});
  }
  if (options.check_indices && !options.checked) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the emulated device checks indices in checked mode alone",
                 .hint = "set Device::Emulated::checked too"});
  }
  if (is_cpu(target ? *target : target_profile(options.profile))) {
    throw Error({.code = ErrorCode::unsupported,
                 .message = fmt::format("the emulated device cannot be a {}: it runs kernels of GPUs",
                                        target ? target->name : options.profile),
                 .hint = "Device::cpu() runs kernels of CPUs"});
  }
  if (!(options.clock_noise >= 0 && options.clock_noise < 1)) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the virtual clock has no noise of {}", options.clock_noise),
                 .hint = "the noise is a share of each step's time: at least 0 and less than 1"});
  }
  return runtime::make_emulated_backend({.profile = options.profile,
                                         .target = target ? std::optional(*target) : std::nullopt,
                                         .checked = options.checked,
                                         .check_indices = options.check_indices,
                                         .threads = options.threads,
                                         .shuffle_seed = options.shuffle_seed,
                                         .scheduling = options.scheduling,
                                         .optimization = options.optimization,
                                         .virtual_clock = options.virtual_clock,
                                         .clock_noise = options.clock_noise,
                                         .clock_seed = options.clock_seed});
#else
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_library,
               .message = "this build of fuse has no emulated device",
               .hint = "configure with -DFUSE_COMPILER_EMULATED=ON"});
#endif
}

std::shared_ptr<runtime::Backend> open_cuda([[maybe_unused]] int ordinal) {
#if FUSE_COMPILER_HAS_CUDA
  return runtime::make_cuda_backend(ordinal);
#else
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::missing_library,
               .message = "this build of fuse has no CUDA device",
               .hint = "configure with -DFUSE_COMPILER_CUDA=ON where the CUDA toolkit's headers are"});
#endif
}

std::shared_ptr<runtime::Backend> open_cpu(const Device::Cpu& options) {
  const runtime::cpu::Machine& here = runtime::cpu::this_machine();
  const std::string machine = options.machine.empty() ? here.level : options.machine;
  if (!runs_on(here.level, machine)) {
    const std::span<const std::string_view> known = cpu_machines();
    throw Error(
        {.code = ErrorCode::unsupported,
         .message =
             fmt::format("the cpu device cannot run kernels for {}: this machine is {}", machine, here.level),
         .hint = listed({known.begin(), known.end()}) + " are known; leave it empty for this machine"});
  }
  return runtime::make_cpu_backend(
      {.threads = options.threads, .pin = options.pin, .executor = options.executor}, cpu_target(machine),
      runtime::cpu_toolchain(machine));
}

std::string emulated_name(const Device::Emulated& options) {
  return fmt::format("emulated {}{}", options.profile, options.checked ? " (checked)" : "");
}

std::string cuda_name(int ordinal, const Target& target) {
  return fmt::format("cuda:{} {} (sm_{})", ordinal, target.name, target.arch);
}

std::string cpu_name(const Target& target) { return "cpu " + target.machine; }

/// The text on one line: line breaks with their indentation become one space.
std::string one_line(const std::string& text) {
  std::string line;
  for (const char c : text) {
    const bool space = c == ' ' || c == '\n';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
  }
  return line;
}

/// Why a device cannot be opened, on one line. For a handler: an internal error is ours to mend, and nothing
/// that a machine lacks, so that it goes on its way.
std::string cause_outside(const Error& error) {
  if (error.kind() == ErrorKind::internal) throw;
  return one_line(error.info().message);
}

std::shared_ptr<void> from_resource(const std::shared_ptr<MemoryResource>& memory, std::int64_t bytes) {
  constexpr std::uintptr_t alignment = 256;
  runtime::contract::forbid("allocates device memory");
  void* const address = memory->allocate(bytes);
  if (!address) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::out_of_memory,
                 .message = fmt::format("the device's memory resource has no {} bytes", bytes)});
  }
  std::shared_ptr<void> block(address, [memory, bytes](void* given) { memory->deallocate(given, bytes); });
  if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0) {
    throw Error(
        {.code = ErrorCode::invalid_argument,
         .message = fmt::format("the device's memory resource gave {}, which is not aligned to {} bytes",
                                address, alignment)});
  }
  return block;
}

}  // namespace

std::string_view to_string(DeviceKind kind) {
  switch (kind) {
    case DeviceKind::reference:
      return "reference";
    case DeviceKind::emulated:
      return "emulated";
    case DeviceKind::cuda:
      return "cuda";
    case DeviceKind::cpu:
      return "cpu";
  }
  return "?";
}

Device Device::emulated(const Emulated& options) {
  return {DeviceKind::emulated, open_emulated(options), emulated_name(options), "emulated: asked for"};
}

Device Device::emulated_like(const Device& gpu, const Emulated& options) {
  const Target& target = backend_of(gpu)->target();
  return {DeviceKind::emulated, open_emulated(options, &target), fmt::format("emulated {}", target.name),
          "emulated: asked for, like " + gpu.name()};
}

Device Device::cpu(const Cpu& options) {
  std::shared_ptr<runtime::Backend> backend = open_cpu(options);
  std::string name = cpu_name(backend->target());
  return {DeviceKind::cpu, std::move(backend), std::move(name), "cpu: asked for"};
}

Device Device::cuda(int ordinal) {
  std::shared_ptr<runtime::Backend> backend = open_cuda(ordinal);
  std::string name = cuda_name(ordinal, backend->target());
  return {DeviceKind::cuda, std::move(backend), std::move(name), "cuda: asked for"};
}

Device Device::auto_select() {
  std::string lacking;
  try {
    std::shared_ptr<runtime::Backend> backend = open_cuda(0);
    std::string name = cuda_name(0, backend->target());
    return {DeviceKind::cuda, std::move(backend), std::move(name), "cuda: the first GPU"};
  } catch (const Error& error) {
    lacking = fmt::format("no GPU ({})", cause_outside(error));
  }
  try {
    std::shared_ptr<runtime::Backend> backend = open_cpu({});
    std::string name = cpu_name(backend->target());
    return {DeviceKind::cpu, std::move(backend), std::move(name), "cpu: " + lacking};
  } catch (const Error& error) {
    lacking += fmt::format(", no cpu device ({})", cause_outside(error));
  }
  try {
    const Emulated options;
    return {DeviceKind::emulated, open_emulated(options), emulated_name(options), "emulated: " + lacking};
  } catch (const Error& error) {
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::missing_library,
                 .message = fmt::format("no device can be opened: {}, no emulated device ({})", lacking,
                                        cause_outside(error)),
                 .hint = error.info().hint});
  }
}

DeviceKind Device::kind() const { return kind_; }
std::string Device::name() const { return name_; }
std::string Device::why() const { return why_; }
std::string Device::report() const {
  std::string text = backend_->report();
  const runtime::Toolchain* const toolchain = backend_->toolchain();
  const std::string compiled = toolchain ? toolchain->remembered() : "";
  if (!compiled.empty() && !text.ends_with('\n')) text += '\n';
  return text + compiled;
}

Buffer Device::allocate(std::int64_t bytes) const {
  if (bytes < 0) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("a buffer cannot have {} bytes", bytes)});
  }
  // Zero bytes are allocated too, so that every buffer has an address of its own.
  Buffer buffer;
  buffer.backend_ = backend_;
  buffer.memory_ =
      memory_ ? from_resource(memory_, std::max<std::int64_t>(bytes, 1))
              : std::shared_ptr<void>(backend_->allocate(bytes),
                                      [backend = backend_](void* address) { backend->free(address); });
  buffer.bytes_ = bytes;
  return buffer;
}

Device Device::with_memory(std::shared_ptr<MemoryResource> memory) const {
  Device device = *this;
  device.memory_ = std::move(memory);
  return device;
}

Stream Device::stream() const { return {backend_, backend_->create_queue()}; }

Stream Device::wrap_stream([[maybe_unused]] void* custream) const {
#if FUSE_COMPILER_HAS_CUDA
  if (kind_ == DeviceKind::cuda) return {backend_, runtime::wrap_cuda_stream(*backend_, custream)};
#endif
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{} is no cuda device: it has no CUstream to wrap", name_),
               .hint = "make a stream with Device::stream"});
}

Stream::Stream(std::shared_ptr<runtime::Backend> backend, std::unique_ptr<runtime::Queue> queue)
    : backend_(std::move(backend)), queue_(std::move(queue)) {}

Status Stream::synchronize() noexcept { return queue_->synchronize(); }

void* Stream::native() const noexcept { return queue_->native(); }

namespace {

void check_size(const char* what, std::int64_t bytes, std::size_t given) {
  if (static_cast<std::uint64_t>(bytes) == given) return;
  throw Error({.code = ErrorCode::buffer_size,
               .message = fmt::format("{} of {} bytes for a buffer of {}", what, given, bytes)});
}

void upload_part(runtime::Backend& backend, runtime::Queue& queue, std::byte* to, const HostData& from) {
  backend.upload(queue, to, from.bytes().data(), static_cast<std::int64_t>(from.bytes().size()))
      .throw_if_failed();
}

void download_part(runtime::Backend& backend, runtime::Queue& queue, const HostSpan& to,
                   const std::byte* from) {
  backend.download(queue, to.bytes().data(), from, static_cast<std::int64_t>(to.bytes().size()))
      .throw_if_failed();
}

}  // namespace

std::byte* Buffer::part(const char* what, std::int64_t offset, std::size_t bytes) const {
  if (offset < 0 || offset > bytes_ || bytes > static_cast<std::uint64_t>(bytes_ - offset)) {
    throw Error({.code = ErrorCode::buffer_size,
                 .message = fmt::format("{} of {} bytes from byte {} on, for a buffer of {}", what, bytes,
                                        offset, bytes_)});
  }
  return static_cast<std::byte*>(memory_.get()) + offset;
}

void Buffer::check_stream(const char* what, const Stream& stream) const {
  if (!backend_ || backend_of(stream) == backend_) return;
  throw Error({.code = ErrorCode::invalid_argument,
               .message = fmt::format("{}: the stream is of another device than the buffer", what),
               .hint = "make both with the same Device"});
}

void Buffer::upload(const HostData& from) {
  check_size("upload", bytes_, from.bytes().size());
  upload(from, 0);
}

void Buffer::download(const HostSpan& to) const {
  check_size("download", bytes_, to.bytes().size());
  download(to, 0);
}

void Buffer::upload(const HostData& from, std::int64_t offset) {
  std::byte* to = part("upload", offset, from.bytes().size());
  if (from.bytes().empty()) return;
  const std::unique_ptr<runtime::Queue> queue = backend_->create_queue();
  upload_part(*backend_, *queue, to, from);
  queue->synchronize().throw_if_failed();
}

void Buffer::download(const HostSpan& to, std::int64_t offset) const {
  const std::byte* from = part("download", offset, to.bytes().size());
  if (to.bytes().empty()) return;
  const std::unique_ptr<runtime::Queue> queue = backend_->create_queue();
  download_part(*backend_, *queue, to, from);
  queue->synchronize().throw_if_failed();
}

void Buffer::upload_later(Stream& stream, const HostData& from, std::int64_t offset) {
  check_stream("upload", stream);
  std::byte* to = part("upload", offset, from.bytes().size());
  if (!from.bytes().empty()) upload_part(*backend_, queue_of(stream), to, from);
}

void Buffer::download(Stream& stream, const HostSpan& to, std::int64_t offset) const {
  check_stream("download", stream);
  const std::byte* from = part("download", offset, to.bytes().size());
  if (!to.bytes().empty()) download_part(*backend_, queue_of(stream), to, from);
}

}  // namespace v0
}  // namespace fuse
