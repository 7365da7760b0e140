// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/cpu_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/device/built_library.hpp"

namespace fuse::runtime::cpu {
namespace {

constexpr char owner_of_kernels = 0;  // its address says whose a function is

[[noreturn]] void internal_error(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

}  // namespace

const Kernel* kernel_of(const Function& function) noexcept {
  return function.owner == &owner_of_kernels ? static_cast<const Kernel*>(&function) : nullptr;
}

CpuModule::CpuModule(std::shared_ptr<const Binary> loaded) : Module(std::move(loaded)) {
  std::size_t next = 0;
  for (const Binary::Image& image : binary->images) {
    const std::shared_ptr<void> library = open_built_library(image.bytes, binary->maker);
    for (std::uint32_t k = 0; k < image.kernels; ++k, ++next) {
      if (next >= binary->kernels.size()) {
        internal_error(fmt::format("the libraries of {} have more kernels than the {} that it names",
                                   binary->name, binary->kernels.size()));
      }
      auto kernel = std::make_unique<Kernel>();
      kernel->owner = &owner_of_kernels;
      kernel->library = library;
      kernel->info = binary->kernels[next];
      kernel->entry = reinterpret_cast<Entry>(
          dlsym(library.get(), fmt::format("fuse_entry_{}", image.first + k).c_str()));
      if (!kernel->entry) internal_error("the library has no entry of kernel " + kernel->info.name);
      std::string name = kernel->info.name;
      kernels_.emplace(std::move(name), std::move(kernel));
    }
  }
  if (next != binary->kernels.size()) {
    internal_error(
        fmt::format("the libraries of {} have {} kernels of {}", binary->name, next, binary->kernels.size()));
  }
}

const Function& CpuModule::function(const std::string& name) const {
  if (const auto found = kernels_.find(name); found != kernels_.end()) return *found->second;
  internal_error("no kernel named " + name + " in the module");
}

}  // namespace fuse::runtime::cpu
