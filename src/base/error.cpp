// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <fuse/error.hpp>

namespace fuse {
inline namespace v0 {

std::string_view to_string(ErrorKind kind) {
  switch (kind) {
    case ErrorKind::user:
      return "user error";
    case ErrorKind::runtime:
      return "runtime error";
    case ErrorKind::internal:
      return "internal error";
  }
  return "?";
}

std::string_view to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::ok:
      return "ok";
    case ErrorCode::shape_mismatch:
      return "shape-mismatch";
    case ErrorCode::dtype_mismatch:
      return "dtype-mismatch";
    case ErrorCode::invalid_extent:
      return "invalid-extent";
    case ErrorCode::invalid_argument:
      return "invalid-argument";
    case ErrorCode::unknown_name:
      return "unknown-name";
    case ErrorCode::duplicate_name:
      return "duplicate-name";
    case ErrorCode::wrong_graph:
      return "wrong-graph";
    case ErrorCode::contradiction:
      return "contradiction";
    case ErrorCode::violated_guard:
      return "violated-guard";
    case ErrorCode::cycle:
      return "cycle";
    case ErrorCode::parse:
      return "parse";
    case ErrorCode::file_format:
      return "file-format";
    case ErrorCode::io:
      return "io";
    case ErrorCode::buffer_size:
      return "buffer-size";
    case ErrorCode::misaligned:
      return "misaligned";
    case ErrorCode::unbound:
      return "unbound";
    case ErrorCode::missing_library:
      return "missing-library";
    case ErrorCode::missing_compiler:
      return "missing-compiler";
    case ErrorCode::broken_install:
      return "broken-install";
    case ErrorCode::incompatible_version:
      return "incompatible-version";
    case ErrorCode::unknown_arch:
      return "unknown-arch";
    case ErrorCode::unsupported:
      return "unsupported";
    case ErrorCode::out_of_memory:
      return "out-of-memory";
    case ErrorCode::out_of_residency:
      return "out-of-residency";
    case ErrorCode::driver:
      return "driver";
    case ErrorCode::kernel_fault:
      return "kernel-fault";
    case ErrorCode::internal:
      return "internal";
  }
  return "?";
}

SourceLocation::SourceLocation(const std::source_location& at) : file(at.file_name()), line(at.line()) {
  if (const auto slash = file.rfind('/'); slash != std::string::npos) file.erase(0, slash + 1);
}

namespace {

std::string compose(const ErrorInfo& info) {
  std::string text;
  if (!info.location.file.empty()) {
    text += info.location.file;
    if (info.location.line) text += ':' + std::to_string(info.location.line);
    text += ": ";
  }
  if (info.kind == ErrorKind::internal) text += "internal error: ";
  if (!info.op.empty()) {
    text += info.op + '(';
    for (std::size_t i = 0; i < info.shapes.size(); ++i) text += (i ? ", " : "") + info.shapes[i];
    text += "): ";
  }
  text += info.message;
  if (!info.hint.empty()) text += "\n  hint: " + info.hint;
  return text;
}

}  // namespace

Error::Error(const Error&) = default;
Error::Error(Error&&) noexcept = default;
Error& Error::operator=(const Error&) = default;
Error& Error::operator=(Error&&) noexcept = default;
Error::~Error() = default;
Error::Error(ErrorInfo info) : info_(std::move(info)), text_(compose(info_)) {}

Status::Status(ErrorCode code, std::string_view message) noexcept : code_(code) {
  size_ = static_cast<std::uint16_t>(std::min(message.size(), message_.size()));
  std::memcpy(message_.data(), message.data(), size_);
}

void Status::throw_if_failed() const {
  if (code_ == ErrorCode::ok) return;
  throw Error({.kind = ErrorKind::runtime, .code = code_, .message = std::string(message())});
}

}  // namespace v0
}  // namespace fuse
