// Device, Stream, Buffer: one source runs on every device.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <fuse/error.hpp>
#include <fuse/export.hpp>
#include <fuse/host_data.hpp>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

namespace fuse {

namespace runtime {
class Backend;
class Queue;
}  // namespace runtime
namespace detail {
struct Access;
}

inline namespace v0 {

/// The kinds of devices.
enum class DeviceKind : std::uint8_t {
  reference,  ///< op by op in double precision: the oracle
  emulated,   ///< the emitted CUDA text, run on the CPU
  cuda,       ///< an NVIDIA GPU through the Driver API
  cpu,        ///< native kernels on the cores of this machine
};
/// The name of the enumerator: "cuda". "?" for a value that is none.
FUSE_COMPILER_API std::string_view to_string(DeviceKind);

/// How the emulated device gives slots on its multiprocessors to the blocks of cooperative kernels that run
/// beside each other.
enum class BlockScheduling : std::uint8_t {
  greedy,  ///< block by block, in turns between the kernels: the worst that a GPU may do
  gang,    ///< a kernel starts when all of its blocks have slots, as in cooperative launches
};

class Stream;
class Buffer;
class MemoryResource;
class Executor;

/// A shared handle to a device. Thread safe. A move copies, so that no handle is without a device.
class FUSE_COMPILER_API Device {
 public:
  /// Another handle to the same device.
  ///@{
  Device(const Device&) = default;
  Device& operator=(const Device&) = default;
  ///@}
  /// Options of the emulated device.
  struct Emulated {
    /// Whose attributes the scheduler sees: h200, h100, b200, a100, v100, l4, rtx4090, tiny3, tiny2.
    std::string profile = "h200";
    bool checked = false;  ///< find bad accesses, races, divergent barriers; count bytes and sectors
    /// In checked mode: an index of `gather` that is out of range, or a start of a dynamic slice, is a fault
    /// of the run, and not clamped.
    bool check_indices = false;
    int threads = 0;                 ///< OS threads that run blocks; 0: one per core
    std::uint64_t shuffle_seed = 0;  ///< not 0: threads run in a random order drawn from it
    BlockScheduling scheduling = BlockScheduling::greedy;  ///< who gets a free slot
    /// Level of the C++ compiler for the emitted kernels, 0 to 3: at 0 it takes a third of the time, for
    /// kernels that run slower. Results have the same bits.
    int optimization = 2;
    /// Measured times are not the host's but those of a simple model of the GPU, queue by queue: the same in
    /// each run. An exploration can be tried so without a GPU (docs/exploration.md).
    bool virtual_clock = false;
    /// Each step's virtual time varies by this share of it (a standard deviation), drawn from the seed; at
    /// least 0 and less than 1.
    double clock_noise = 0;
    std::uint64_t clock_seed = 1;  ///< what the noise of the clock is drawn from
  };

  /// Options of the cpu device.
  struct Cpu {
    int threads = 0;   ///< the calling one counts; 0: one for each core that the process may use
    bool pin = false;  ///< each worker thread stays on one core; the calling thread is left alone
    /// What kernels are compiled for: x86-64-v2, x86-64-v3 or x86-64-v4, or armv8-a on AArch64; empty: what
    /// this machine has. Other machines of that level can load what is saved. Results may differ between
    /// levels in the last bits, and do not between numbers of threads.
    std::string machine{};
    std::shared_ptr<Executor> executor{};  ///< threads of the application's own, instead (executor.hpp)
  };

  /// The reference device: it evaluates each op in double precision or wider, without compiling. The library
  /// that only runs does not have it.
  static Device reference();
  /// Native kernels, built by the system's C++ compiler. Throws unsupported where this machine does not have
  /// the level, and invalid_argument for fewer than 0 or more than 1024 threads.
  static Device cpu(const Cpu& options);
  /// The cpu device with the default options.
  static Device cpu() { return cpu(Cpu{}); }
  /// The emitted kernels, compiled by a C++ compiler and run on the CPU. Throws invalid_argument for an
  /// option out of range, unknown_name for an unknown profile, unsupported for the profile of a CPU, and
  /// missing_library in a build of fuse without the emulated device.
  static Device emulated(const Emulated& options);
  /// The emulated device with the default options.
  static Device emulated() { return emulated(Emulated{}); }
  /// An emulated device with the properties of this GPU: a graph compiles to the same kernels for both, so
  /// that they can be checked where they do no harm. `options.profile` is ignored. Throws what `emulated`
  /// throws, and unsupported for a cpu device.
  static Device emulated_like(const Device& gpu, const Emulated& options);
  /// Throws missing_library or driver, with what was looked for and where.
  static Device cuda(int ordinal = 0);
  /// For tools and examples: the first GPU, else the cpu device, else, where this machine is no x86-64-v2,
  /// the emulated one. why() says which and why. Nobody looks for a compiler here: where there is none, the
  /// cpu device runs saved plans, and compile() throws missing_compiler, as it does for the emulated device.
  /// Throws missing_library where none of the three can be opened. An application names its device, so that a
  /// lost driver never means a silent CPU run.
  static Device auto_select();

  /// What kind of device it is.
  DeviceKind kind() const;
  /// The name for messages: "cuda:0 NVIDIA H200 (sm_90)", "emulated h200".
  std::string name() const;
  std::string why() const;     ///< how it was chosen; one line
  std::string report() const;  ///< libraries and compilers looked for and where, one per line

  /// Device memory, 256-byte aligned, contents undefined. Throws out_of_memory, and invalid_argument for
  /// fewer than 0 bytes.
  Buffer allocate(std::int64_t bytes) const;
  /// This device, with all memory taken from `memory`: that of Buffers, and of workspaces and sessions of
  /// what is compiled for it. Null: from the device itself, as without. See memory.hpp.
  Device with_memory(std::shared_ptr<MemoryResource> memory) const;
  /// The resource that `with_memory` was given; null: the device itself.
  const std::shared_ptr<MemoryResource>& memory() const { return memory_; }
  /// A new stream of this device.
  Stream stream() const;
  /// Wraps a caller's CUstream; the caller keeps it alive. Throws invalid_argument for a device of
  /// another kind than cuda.
  Stream wrap_stream(void* custream) const;

 private:
  friend struct detail::Access;
  Device(DeviceKind kind, std::shared_ptr<runtime::Backend> backend, std::string name, std::string why)
      : kind_(kind), backend_(std::move(backend)), name_(std::move(name)), why_(std::move(why)) {}
  DeviceKind kind_ = DeviceKind::reference;
  std::shared_ptr<runtime::Backend> backend_;
  std::string name_, why_;
  std::shared_ptr<MemoryResource> memory_;
};

/// A shared handle to an in-order queue of work on a device. One thread at a time. A move copies.
class FUSE_COMPILER_API Stream {
 public:
  /// Another handle to the same queue.
  ///@{
  Stream(const Stream&) = default;
  Stream& operator=(const Stream&) = default;
  ///@}
  /// Waits for the work so far; reports a failure of any of it.
  Status synchronize() noexcept;
  void* native() const noexcept;  ///< CUstream, or null off CUDA

 private:
  friend class Device;
  friend struct detail::Access;
  Stream(std::shared_ptr<runtime::Backend> backend, std::unique_ptr<runtime::Queue> queue);
  std::shared_ptr<runtime::Backend> backend_;
  std::shared_ptr<runtime::Queue> queue_;
};

/// Where a tensor's elements are in device memory. Not owned; 16-byte aligned.
struct BufferView {
  void* address = nullptr;  ///< the first byte
  std::int64_t bytes = 0;   ///< the number of bytes from there on
};

/// Owned device memory; shared by copies, freed with the last one.
class FUSE_COMPILER_API Buffer {
 public:
  /// A buffer without memory.
  Buffer() = default;
  /// The same memory.
  ///@{
  Buffer(const Buffer&) = default;
  Buffer& operator=(const Buffer&) = default;
  ///@}
  /// Takes the memory of another buffer, which then has none.
  ///@{
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    backend_ = std::move(other.backend_);
    memory_ = std::move(other.memory_);
    bytes_ = std::exchange(other.bytes_, 0);
    return *this;
  }
  ///@}
  /// The number of bytes.
  std::int64_t size() const { return bytes_; }
  /// The first byte in device memory; null for a buffer without memory.
  void* address() const { return memory_.get(); }
  /// All of the memory. Valid as long as any copy of the buffer.
  BufferView view() const { return {memory_.get(), bytes_}; }
  /// Copies the whole buffer from or to host memory and waits, on a queue of its own: work on this memory in
  /// any stream must have been waited for. Throws buffer_size when the sizes differ, driver on failure.
  ///@{
  void upload(const HostData& from);
  void download(const HostSpan& to) const;
  ///@}
  /// As above, for a part of the buffer: from byte `offset` on, as many bytes as the elements have. Throws
  /// buffer_size for a part that is not inside the buffer.
  ///@{
  void upload(const HostData& from, std::int64_t offset);
  void download(const HostSpan& to, std::int64_t offset) const;
  ///@}
  /// As above, but the copy is work of the stream, and nobody waits for it: the elements must stay where they
  /// are, and those to copy as they are, until the stream has passed it. A temporary that owns its elements
  /// does not compile. Throws buffer_size, driver; invalid_argument for a stream of another device.
  ///@{
  template <class C>
  requires detail::ElementRange<std::remove_reference_t<C>>
  void upload(Stream& stream, C&& from, std::int64_t offset = 0) {
    static_assert(
        std::is_lvalue_reference_v<C> || detail::is_span<std::remove_cvref_t<C>>,
        "the stream would read the elements after they are gone with their temporary: give it a name");
    upload_later(stream, HostData(from), offset);
  }
  void download(Stream& stream, const HostSpan& to, std::int64_t offset = 0) const;
  ///@}
 private:
  friend class Device;
  friend struct detail::Access;
  void upload_later(Stream& stream, const HostData& from, std::int64_t offset);
  std::byte* part(const char* what, std::int64_t offset, std::size_t bytes) const;
  void check_stream(const char* what, const Stream& stream) const;

  std::shared_ptr<runtime::Backend> backend_;
  std::shared_ptr<void> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace v0
}  // namespace fuse
