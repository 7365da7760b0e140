// SharedLibrary: a library opened at run time, and the account of where it was looked for.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/error.hpp>
#include <span>
#include <string>
#include <vector>

#include "os/environment.hpp"

namespace fuse {

/// 0.0 where a library does not report it.
struct LibraryVersion {
  int major = 0, minor = 0;
  explicit operator bool() const noexcept { return major != 0; }
};
std::string to_string(LibraryVersion);  ///< "13.0"

/// What to open and what to say when it is not there.
struct LibrarySpec {
  std::string what;                    ///< "the CUDA driver", as messages name it
  Variable variable = Variable::none;  ///< whose value, if set, is the only candidate
  std::vector<std::string> sonames{};  ///< tried in order, by the system's search path first
  bool toolkit = false;                ///< then in the CUDA toolkit's library directories
  std::string hint{};                  ///< which package supplies it
  std::vector<std::string> needed{};   ///< symbols without which a candidate is refused
  /// Reports the version of a candidate that has all of `needed`.
  LibraryVersion (*version)(void* handle) = nullptr;
  int oldest = 0, newest = 0;  ///< major versions that fuse takes
};

/// Opened once and never closed: code and threads of a driver outlive the objects that used it. Immutable
/// after construction, so threads share it freely.
class SharedLibrary {
 public:
  SharedLibrary() = default;
  /// Never throws: an absent library is a value with a report. `path`, if not empty, is the only candidate.
  static SharedLibrary open(const LibrarySpec& spec, const std::string& path = {});

  explicit operator bool() const noexcept { return handle_ != nullptr; }
  const std::string& what() const noexcept { return what_; }
  const std::string& path() const noexcept { return path_; }  ///< the candidate that was opened
  std::string file() const;  ///< the file that the loader found under it; empty if not opened
  LibraryVersion version() const noexcept { return version_; }
  /// One line for each candidate: where, and why it was refused.
  const std::vector<std::string>& tried() const noexcept { return tried_; }
  std::string report() const;  ///< its name, then what was tried, one per line
  /// Unless it was opened, throws a runtime Error with what was tried: incompatible_version or broken_install
  /// where a candidate was there, else missing_library.
  void require() const;

  /// Null where the library has no such symbol (or was not opened).
  void* symbol(const char* name) const noexcept;
  template <class F>
  F find(const char* name) const noexcept {
    return reinterpret_cast<F>(symbol(name));
  }
  /// As find; Error{runtime, missing_library} naming the library and the symbol where it is absent.
  template <class F>
  F get(const char* name) const {
    return reinterpret_cast<F>(required_symbol(name));
  }

 private:
  void* required_symbol(const char* name) const;

  void* handle_ = nullptr;
  std::string what_, hint_, path_;
  std::vector<std::string> tried_;
  LibraryVersion version_;
  ErrorCode failure_ = ErrorCode::missing_library;
};

/// Library directories of CUDA toolkits: $CUDA_HOME, $CUDA_PATH, then /usr/local/cuda.
std::vector<std::string> toolkit_library_directories();

}  // namespace fuse
