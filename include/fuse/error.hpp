// What goes wrong, as values. Error is thrown by building, compiling, loading, prepare, allocate and Session.
// Status is returned by Prepared::run, Prepared::pack, Explorer::run and Stream::synchronize, which never
// throw. SPDX-License-Identifier: Apache-2.0
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

/// Who can fix it: the program that uses fuse (user), the machine it runs on (runtime), or us (internal).
enum class ErrorKind : std::uint8_t { user, runtime, internal };

/// What is wrong. docs/errors.md has an example and a remedy of each.
enum class ErrorCode : std::uint8_t {
  ok,                    ///< nothing is wrong
  shape_mismatch,        ///< shapes do not fit each other, or the declared one
  dtype_mismatch,        ///< element types differ, or an op does not take this type
  invalid_extent,        ///< negative, out of its range, or a product overflows 63 bits
  invalid_argument,      ///< an axis, a permutation, an option
  unknown_name,          ///< there is nothing of that name
  duplicate_name,        ///< two things have one name, or one is given twice
  wrong_graph,           ///< a tensor or dim of another graph
  contradiction,         ///< assumptions that cannot hold together
  violated_guard,        ///< dims for which an assumption, or what an op needs, does not hold
  cycle,                 ///< `.fuse` text uses a value before it is defined
  parse,                 ///< `.fuse` text or decisions; the message has the line
  file_format,           ///< npy, safetensors, a saved plan
  io,                    ///< a file or a directory cannot be opened, read, made or written
  buffer_size,           ///< a buffer has another number of bytes than the type asks for
  misaligned,            ///< an address is not aligned as it must be
  unbound,               ///< an input, parameter, output or dim without a value
  missing_library,       ///< a library was not found, or this build of fuse lacks the device
  missing_compiler,      ///< kernels are to be built, and there is no C++ compiler
  broken_install,        ///< a library or compiler is there, but damaged or incomplete
  incompatible_version,  ///< a library's, or the driver's, does not fit fuse or each other
  unknown_arch,          ///< NVRTC does not compile for this architecture, or the text names none
  unsupported,           ///< well formed, but this device, build or file format cannot do it
  out_of_memory,         ///< the host, the device or the MemoryResource has no room
  out_of_residency,      ///< blocks that wait for each other do not all find slots on the multiprocessors
  driver,                ///< the device's driver or library refused; the message has its code
  kernel_fault,          ///< checked mode found an illegal access, a race or a divergent barrier
  internal,              ///< an error in fuse itself
};

/// "user error", "runtime error", "internal error"; "?" for a value that is none.
FUSE_COMPILER_API std::string_view to_string(ErrorKind);
/// The name with hyphens: "shape-mismatch". "?" for a value that is none.
FUSE_COMPILER_API std::string_view to_string(ErrorCode);

/// A line of the user's program (or of a `.fuse` file). Line 0 means unknown.
struct FUSE_COMPILER_API SourceLocation {
  std::string file;        ///< the name of the file; empty: unknown
  std::uint32_t line = 0;  ///< the line, from 1 on; 0: unknown

  /// An unknown line.
  SourceLocation() = default;
  /// A line of a file; the name is kept as it is given.
  SourceLocation(std::string file_, std::uint32_t line_) : file(std::move(file_)), line(line_) {}
  /// The line of the program; of the path, the base name of the file is kept.
  SourceLocation(
      const std::source_location& at);  // NOLINT: converting on purpose; keeps the file's base name
  /// True when file and line are equal.
  bool operator==(const SourceLocation&) const = default;
};

/// Everything known about a failure. Only `code` and `message` are always set.
struct ErrorInfo {
  ErrorKind kind = ErrorKind::user;              ///< who can mend it
  ErrorCode code = ErrorCode::invalid_argument;  ///< what is wrong
  std::string message{};                         ///< one sentence: what is wrong
  std::string op{};                              ///< "matmul", or empty
  std::vector<std::string> shapes{};             ///< operand types, "f32[4, 8]"
  SourceLocation location{};                     ///< the builder's line, or the line of a file
  std::string hint{};                            ///< what would fix it
};

/// Thrown by building, compiling, loading, prepare, allocate and Session. what() is the whole text:
///   main.cpp:12: matmul(f32[4, 8], f32[4, 8]): contracted extents differ: 8 and 4
///     hint: transpose the second operand
class FUSE_COMPILER_API Error : public std::exception {
 public:
  /// An error with the text that the parts of `info` make.
  explicit Error(ErrorInfo info);
  /// Copies or moves all that is known about the failure.
  ///@{
  Error(const Error&);
  Error(Error&&) noexcept;
  Error& operator=(const Error&);
  Error& operator=(Error&&) noexcept;
  ///@}
  ~Error() override;
  /// The whole text, as above. Valid as long as the error.
  const char* what() const noexcept override { return text_.c_str(); }
  /// The parts of the text.
  const ErrorInfo& info() const noexcept { return info_; }
  /// Who can fix it.
  ErrorKind kind() const noexcept { return info_.kind; }
  /// What is wrong.
  ErrorCode code() const noexcept { return info_.code; }

 private:
  ErrorInfo info_;
  std::string text_;
};

class FUSE_COMPILER_API Status;  // here, since g++ 12 takes no two kinds of attributes in one place

/// The outcome of a call that does not throw. Fixed size: making one never allocates.
class [[nodiscard]] Status {
 public:
  /// Success.
  Status() noexcept {}
  /// Copies the code and the message.
  ///@{
  Status(const Status& other) noexcept : code_(other.code_), size_(other.size_) { copy(other); }
  Status& operator=(const Status& other) noexcept {
    code_ = other.code_;
    size_ = other.size_;
    copy(other);
    return *this;
  }
  ///@}
  /// The failure `code`, or success for ErrorCode::ok. The message is copied, and cut at 509 bytes.
  Status(ErrorCode code, std::string_view message) noexcept;
  /// True for success.
  ///@{
  bool ok() const noexcept { return code_ == ErrorCode::ok; }
  explicit operator bool() const noexcept { return ok(); }
  ///@}
  /// What is wrong; ErrorCode::ok for success.
  ErrorCode code() const noexcept { return code_; }
  /// Empty when ok. Cut at 509 bytes.
  std::string_view message() const noexcept { return {message_.data(), size_}; }
  /// Throws an Error of kind runtime with this code and message, unless ok.
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
