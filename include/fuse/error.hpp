// What goes wrong, as values: Error is thrown while building, compiling and loading; Status is
// returned by run, which never throws.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <fuse/export.hpp>
#include <source_location>
#include <string>
#include <string_view>
#include <vector>

namespace fuse {
inline namespace v0 {

/// Who can mend it: the program that uses fuse (user), the machine it runs on (runtime), or us (internal).
enum class ErrorKind : std::uint8_t { user, runtime, internal };

enum class ErrorCode : std::uint8_t {
  ok,
  shape_mismatch,
  dtype_mismatch,
  invalid_extent,    ///< negative, or its product overflows 63 bits
  invalid_argument,  ///< an axis, a permutation, an option
  unknown_name,
  duplicate_name,
  wrong_graph,     ///< a tensor or dim of another graph
  contradiction,   ///< assumptions that cannot hold together
  violated_guard,  ///< dims for which an assumption, or what an op needs, does not hold
  cycle,
  parse,        ///< `.fuse` text; the message has line and column
  file_format,  ///< npy, safetensors
  io,
  buffer_size,
  misaligned,
  unbound,  ///< an input, parameter, output or dim without a value
  missing_library,
  missing_compiler,
  broken_install,        ///< a library or compiler is there, but damaged or incomplete
  incompatible_version,  ///< a library's, or the driver's, does not fit fuse or each other
  unknown_arch,
  unsupported,
  out_of_memory,
  out_of_residency,  ///< blocks that wait for each other do not all find slots on the multiprocessors
  driver,            ///< the device's driver or library refused; the message has its code
  kernel_fault,      ///< checked mode found an illegal access, a race or a divergent barrier
  internal,
};

FUSE_COMPILER_API std::string_view to_string(ErrorKind);
FUSE_COMPILER_API std::string_view to_string(ErrorCode);

/// A line of the user's program (or of a `.fuse` file). Line 0 means unknown.
struct FUSE_COMPILER_API SourceLocation {
  std::string file;
  std::uint32_t line = 0;

  SourceLocation() = default;
  SourceLocation(std::string file_, std::uint32_t line_) : file(std::move(file_)), line(line_) {}
  SourceLocation(
      const std::source_location& at);  // NOLINT: converting on purpose; keeps the file's base name
  bool operator==(const SourceLocation&) const = default;
};

/// Everything known about a failure. Only `code` and `message` are always set.
struct ErrorInfo {
  ErrorKind kind = ErrorKind::user;
  ErrorCode code = ErrorCode::invalid_argument;
  std::string message{};              ///< one sentence: what is wrong
  std::string op{};                   ///< "matmul", or empty
  std::vector<std::string> shapes{};  ///< operand types, "f32[4, 8]"
  SourceLocation location{};          ///< the builder's line, or the line of a file
  std::string hint{};                 ///< what would mend it
};

/// Thrown by building, compiling and loading. what() is the whole text:
///   main.cpp:12: matmul(f32[4, 8], f32[4, 8]): contracted extents differ: 8 and 4
///     hint: transpose the second operand
class FUSE_COMPILER_API Error : public std::exception {
 public:
  explicit Error(ErrorInfo info);
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ~Error() override;
  const char* what() const noexcept override { return text_.c_str(); }
  const ErrorInfo& info() const noexcept { return info_; }
  ErrorKind kind() const noexcept { return info_.kind; }
  ErrorCode code() const noexcept { return info_.code; }

 private:
  ErrorInfo info_;
  std::string text_;
};

class FUSE_COMPILER_API Status;  // here, since g++ 12 takes no two kinds of attributes in one place

/// The outcome of a run. Fixed size: making one never allocates.
class [[nodiscard]] Status {
 public:
  Status() noexcept {}
  Status(const Status& other) noexcept : code_(other.code_), size_(other.size_) { copy(other); }
  Status& operator=(const Status& other) noexcept {
    code_ = other.code_;
    size_ = other.size_;
    copy(other);
    return *this;
  }
  Status(ErrorCode code, std::string_view message) noexcept;
  static Status ok() noexcept { return {}; }
  explicit operator bool() const noexcept { return code_ == ErrorCode::ok; }
  ErrorCode code() const noexcept { return code_; }
  /// Empty when ok. Cut at 509 bytes.
  std::string_view message() const noexcept { return {message_.data(), size_}; }
  /// Throws a runtime Error unless ok.
  void throw_if_failed() const;

 private:
  ErrorCode code_ = ErrorCode::ok;
  std::uint16_t size_ = 0;
  // Only the first size_ bytes are set: a step of a run makes several of these.
  std::array<char, 509> message_;

  void copy(const Status& other) noexcept {
    for (std::uint16_t i = 0; i < size_; ++i) message_[i] = other.message_[i];
  }
};

}  // namespace v0
}  // namespace fuse
