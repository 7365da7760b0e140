// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/built_library.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <fuse/error.hpp>

#include "os/temporary_folder.hpp"

namespace fuse::runtime {

std::shared_ptr<void> open_built_library(const std::vector<char>& image, const std::string& maker) {
  // The dynamic linker takes files only. It keeps what it mapped when the file is removed.
  const TemporaryFolder folder;
  folder.write("library", {image.data(), image.size()});
  void* const handle = dlopen((folder.path() + "/library").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle) return {handle, dlclose};
  const char* const why = dlerror();
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::broken_install,
               .message = fmt::format("cannot load what {} built: {}", maker, why ? why : "unknown reason"),
               .hint = "the compiler may build for another machine: set FUSE_CXX to one of this system"});
}

}  // namespace fuse::runtime
