// SPDX-License-Identifier: Apache-2.0
#include "runtime/reference/reference_backend.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <new>

namespace fuse::runtime {
namespace {

constexpr std::align_val_t alignment{256};

class ReferenceQueue final : public Queue {
 public:
  Status synchronize() noexcept override { return Status(); }
};

[[noreturn]] void refuse(const char* what) {
  throw Error({.kind = ErrorKind::internal,
               .code = ErrorCode::internal,
               .message = fmt::format("the reference device evaluates graphs; it cannot {}", what)});
}

class ReferenceBackend final : public Backend {
 public:
  const Target& target() const override { return target_; }
  std::string report() const override {
    return "reference: evaluates graphs op by op on the host; looks for no library\n";
  }

  void* allocate(std::int64_t bytes) override {
    // More than the machine has is refused here: the system would promise it, and end the process later.
    const std::int64_t machine =
        static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
    void* address = nullptr;
    if (bytes >= 0 && bytes <= machine) {
      address = ::operator new(bytes > 0 ? static_cast<std::size_t>(bytes) : 1, alignment, std::nothrow);
    }
    if (address) return address;
    throw Error({.kind = ErrorKind::runtime,
                 .code = ErrorCode::out_of_memory,
                 .message = fmt::format("{} bytes of host memory: the machine has {}", bytes, machine)});
  }
  void free(void* address) noexcept override { ::operator delete(address, alignment); }
  std::unique_ptr<Queue> create_queue() override { return std::make_unique<ReferenceQueue>(); }

  Status upload(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept override {
    return copy(queue, to, from, bytes);
  }
  Status download(Queue& queue, void* to, const void* from, std::int64_t bytes) noexcept override {
    return copy(queue, to, from, bytes);
  }
  Status copy(Queue&, void* to, const void* from, std::int64_t bytes) noexcept override {
    if (bytes > 0) std::memmove(to, from, static_cast<std::size_t>(bytes));
    return Status();
  }
  Status memset(Queue&, void* to, int byte, std::int64_t bytes) noexcept override {
    if (bytes > 0) std::memset(to, byte, static_cast<std::size_t>(bytes));
    return Status();
  }

  std::unique_ptr<Module> load_binary(std::shared_ptr<const Binary>) override { refuse("load kernels"); }
  std::vector<Fit> fits() const override { return {{"device", "reference"}}; }
  std::unique_ptr<Gemm> prepare_gemm(const GemmDesc&) override { refuse("prepare a gemm"); }
  Status launch(Queue&, const Function&, Dim3, const Argument*, int) noexcept override {
    return {ErrorCode::internal, "the reference device evaluates graphs; it cannot launch kernels"};
  }

 private:
  const Target target_ = target_profile("h200");
};

}  // namespace

std::unique_ptr<Backend> make_reference_backend() { return std::make_unique<ReferenceBackend>(); }

}  // namespace fuse::runtime
