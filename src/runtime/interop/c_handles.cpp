// SPDX-License-Identifier: Apache-2.0
#include "runtime/interop/c_handles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <exception>
#include <new>

namespace fuse::runtime::c {
namespace {

/// Fixed, so that keeping it cannot fail, and nothing has to be destroyed when a thread ends.
struct LastError {
  static constexpr std::size_t room = 4096;
  char text[room] = "";
};
thread_local LastError last_error;

}  // namespace

int status_of(ErrorCode code) noexcept {
  switch (code) {
    case ErrorCode::ok:
      return FUSE_COMPILER_OK;
    case ErrorCode::shape_mismatch:
      return FUSE_COMPILER_SHAPE_MISMATCH;
    case ErrorCode::dtype_mismatch:
      return FUSE_COMPILER_DTYPE_MISMATCH;
    case ErrorCode::invalid_extent:
      return FUSE_COMPILER_INVALID_EXTENT;
    case ErrorCode::invalid_argument:
      return FUSE_COMPILER_INVALID_ARGUMENT;
    case ErrorCode::unknown_name:
      return FUSE_COMPILER_UNKNOWN_NAME;
    case ErrorCode::duplicate_name:
      return FUSE_COMPILER_DUPLICATE_NAME;
    case ErrorCode::wrong_graph:
      return FUSE_COMPILER_WRONG_GRAPH;
    case ErrorCode::contradiction:
      return FUSE_COMPILER_CONTRADICTION;
    case ErrorCode::violated_guard:
      return FUSE_COMPILER_VIOLATED_GUARD;
    case ErrorCode::cycle:
      return FUSE_COMPILER_CYCLE;
    case ErrorCode::parse:
      return FUSE_COMPILER_PARSE;
    case ErrorCode::file_format:
      return FUSE_COMPILER_FILE_FORMAT;
    case ErrorCode::io:
      return FUSE_COMPILER_IO;
    case ErrorCode::buffer_size:
      return FUSE_COMPILER_BUFFER_SIZE;
    case ErrorCode::misaligned:
      return FUSE_COMPILER_MISALIGNED;
    case ErrorCode::unbound:
      return FUSE_COMPILER_UNBOUND;
    case ErrorCode::missing_library:
      return FUSE_COMPILER_MISSING_LIBRARY;
    case ErrorCode::missing_compiler:
      return FUSE_COMPILER_MISSING_COMPILER;
    case ErrorCode::broken_install:
      return FUSE_COMPILER_BROKEN_INSTALL;
    case ErrorCode::incompatible_version:
      return FUSE_COMPILER_INCOMPATIBLE_VERSION;
    case ErrorCode::unknown_arch:
      return FUSE_COMPILER_UNKNOWN_ARCH;
    case ErrorCode::unsupported:
      return FUSE_COMPILER_UNSUPPORTED;
    case ErrorCode::out_of_memory:
      return FUSE_COMPILER_OUT_OF_MEMORY;
    case ErrorCode::out_of_residency:
      return FUSE_COMPILER_OUT_OF_RESIDENCY;
    case ErrorCode::driver:
      return FUSE_COMPILER_DRIVER;
    case ErrorCode::kernel_fault:
      return FUSE_COMPILER_KERNEL_FAULT;
    case ErrorCode::internal:
      return FUSE_COMPILER_INTERNAL;
  }
  return FUSE_COMPILER_INTERNAL;
}

int failed(ErrorCode code, std::string_view text) noexcept {
  const std::size_t size = std::min(text.size(), LastError::room - 1);
  std::memcpy(last_error.text, text.data(), size);
  last_error.text[size] = '\0';
  return status_of(code);
}

int failed_by_exception() noexcept {
  try {
    throw;
  } catch (const Error& error) {
    return failed(error.code(), error.what());
  } catch (const std::bad_alloc&) {
    return failed(ErrorCode::out_of_memory, "the host has no memory left");
  } catch (const std::exception& error) {
    return failed(ErrorCode::internal, error.what());
  } catch (...) {
    return failed(ErrorCode::internal, "an exception of an unknown type");
  }
}

int null_argument(const char* call, const char* argument) noexcept {
  // Without allocating: a run may be what was called.
  char text[128];
  const auto end = fmt::format_to_n(text, sizeof text, "{}: {} is null", call, argument);
  return failed(ErrorCode::invalid_argument, {text, std::min<std::size_t>(end.size, sizeof text)});
}

std::size_t checked_size(const char* type, const void* fields, std::size_t given, std::size_t known) {
  constexpr std::size_t field = 8, most = 4096;
  static_assert(sizeof(std::size_t) == field && sizeof(void*) == field);
  if (given < field || given % field != 0 || given > most) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{}: no version of it has the struct_size {}", type, given),
                 .hint = "set struct_size to its sizeof"});
  }
  const auto* const bytes = static_cast<const unsigned char*>(fields);
  for (std::size_t i = known; i < given; ++i) {
    if (bytes[i] == 0) continue;
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("{}: byte {} is of a field that this version of fuse does not have, "
                                        "and not zero (its struct has {} bytes, {} were given)",
                                        type, i, known, given)});
  }
  return std::min(given, known);
}

}  // namespace fuse::runtime::c

const char* fuse_compiler_last_error(void) { return fuse::runtime::c::last_error.text; }

const char* fuse_compiler_version(void) { return FUSE_COMPILER_VERSION; }

const char* fuse_compiler_status_name(int status) {
  using fuse::ErrorCode;
  for (int code = 0; code <= static_cast<int>(ErrorCode::internal); ++code) {
    const auto known = static_cast<ErrorCode>(code);
    if (fuse::runtime::c::status_of(known) == status) return fuse::to_string(known).data();
  }
  return "?";
}
