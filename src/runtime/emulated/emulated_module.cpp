// SPDX-License-Identifier: Apache-2.0
#include "runtime/emulated/emulated_module.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include "runtime/device/built_library.hpp"

namespace fuse::runtime::emulated {
namespace {

[[noreturn]] void internal(std::string message) {
  throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = std::move(message)});
}

}  // namespace

EmulatedModule::EmulatedModule(std::shared_ptr<const Binary> loaded) : Module(std::move(loaded)) {
  std::size_t next = 0;
  for (const Binary::Image& image : binary->images) {
    const std::shared_ptr<void> library = open_built_library(image.bytes, binary->maker);
    for (std::uint32_t k = 0; k < image.kernels; ++k, ++next) {
      auto kernel = std::make_shared<Kernel>();
      kernel->library = library;
      kernel->info = binary->kernels.at(next);
      kernel->entry = reinterpret_cast<Entry>(
          dlsym(library.get(), fmt::format("fuse_entry_{}", image.first + k).c_str()));
      if (!kernel->entry) internal("the library has no entry of kernel " + kernel->info.name);
      kernels_.emplace(kernel->info.name, std::move(kernel));
    }
  }
  if (next != binary->kernels.size()) {
    internal(
        fmt::format("the libraries of {} have {} kernels of {}", binary->name, next, binary->kernels.size()));
  }
}

const Function& EmulatedModule::function(const std::string& name) const {
  if (const auto found = kernels_.find(name); found != kernels_.end()) return *found->second;
  internal("no kernel named " + name + " in the module");
}

}  // namespace fuse::runtime::emulated
