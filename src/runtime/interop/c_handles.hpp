// What the handles of the C interface hold, and how its calls end: an exception becomes a status.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/c_api.h>

#include <cstddef>
#include <cstdint>
#include <fuse/device.hpp>
#include <fuse/error.hpp>
#include <fuse/executable.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

struct fuse_compiler_device {
  fuse::Device device;
  std::string name;
};
struct fuse_compiler_plan {
  fuse::Executable executable;
};
struct fuse_compiler_prepared {
  fuse::Executable executable;
  fuse::Prepared prepared;
};
struct fuse_compiler_workspace {
  fuse::Workspace workspace;
};
struct fuse_compiler_stream {
  fuse::Stream stream;
};
struct fuse_compiler_buffer {
  fuse::Buffer buffer;
};

namespace fuse::runtime::c {

int status_of(ErrorCode code) noexcept;

/// Keeps the text for fuse_compiler_last_error, and returns the status.
int failed(ErrorCode code, std::string_view text) noexcept;
/// The same for the exception that is being handled.
int failed_by_exception() noexcept;

inline int ended(const Status& status) noexcept {
  return status ? FUSE_COMPILER_OK : failed(status.code(), status.message());
}

template <class Body>
int guarded(Body&& body) noexcept {
  try {
    body();
    return FUSE_COMPILER_OK;
  } catch (...) {
    return failed_by_exception();
  }
}

/// The first of `arguments` that is null, or none.
struct NamedArgument {
  const void* value = nullptr;
  const char* name = nullptr;
};
template <class... Arguments>
const char* first_null(const Arguments&... arguments) noexcept {
  const char* found = nullptr;
  (void)((arguments.value ? false : (found = arguments.name, true)) || ...);
  return found;
}
int null_argument(const char* call, const char* argument) noexcept;

/// The fields, of the `known` bytes of this version's struct, that the caller's struct of `given` bytes has.
/// Throws invalid_argument for a size that no version has, and for a field that this version does not know
/// and that is not zero.
std::size_t checked_size(const char* type, const void* fields, std::size_t given, std::size_t known);

}  // namespace fuse::runtime::c
