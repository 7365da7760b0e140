// SPDX-License-Identifier: Apache-2.0
#include "os/temporary_folder.hpp"

#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <fuse/error.hpp>
#include <system_error>

#include "os/environment.hpp"

namespace fuse {
namespace {

// Room for a source, its assembly text and its library.
constexpr std::int64_t enough = std::int64_t{1} << 20;

[[noreturn]] void unusable(const std::string& message, const std::string& hint) {
  throw Error({.kind = ErrorKind::runtime,
               .code = ErrorCode::io,
               .message = message,
               .hint = hint + ", or set TMPDIR to another one"});
}

std::string named(const std::string& directory) {
  return fmt::format("the temporary directory {} ({})", directory,
                     value_of(Variable::tmpdir).empty() ? "TMPDIR is not set" : "from TMPDIR");
}

}  // namespace

DirectoryState directory_state(const std::string& path) {
  DirectoryState state;
  std::error_code ignored;
  state.exists = std::filesystem::is_directory(path, ignored);
  struct statvfs system {};
  if (!state.exists || ::statvfs(path.c_str(), &system) != 0) return state;
  state.writable = ::access(path.c_str(), W_OK | X_OK) == 0;
  state.read_only = (system.f_flag & ST_RDONLY) != 0;
  state.executable = (system.f_flag & ST_NOEXEC) == 0;
  state.free_bytes = static_cast<std::int64_t>(system.f_bavail) * static_cast<std::int64_t>(system.f_frsize);
  return state;
}

std::string temporary_directory() {
  const std::string chosen = value_of(Variable::tmpdir);
  return chosen.empty() ? "/tmp" : chosen;
}

TemporaryFolder::TemporaryFolder() {
  const std::string directory = temporary_directory();
  const DirectoryState state = directory_state(directory);
  if (!state.exists) unusable(named(directory) + " does not exist", "make it");
  if (!state.executable) {
    unusable(named(directory) + " is mounted noexec: kernels built there cannot be loaded",
             "remount it with exec");
  }
  std::string pattern = directory + "/fuse-XXXXXX";
  if (!::mkdtemp(pattern.data())) {
    const std::string why = std::generic_category().message(errno);
    unusable(fmt::format("{} cannot be written: {}", named(directory), why),
             state.read_only ? "remount it with rw" : "give this user the right to write there");
  }
  path_ = pattern;
}

TemporaryFolder::~TemporaryFolder() {
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

void TemporaryFolder::write(const std::string& file, std::string_view text) const {
  std::ofstream out(path_ + '/' + file, std::ios::binary);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  out.close();
  if (out) return;
  const std::string why = std::generic_category().message(errno);
  blame(fmt::format("{} of {} bytes could not be written", file, text.size()));
  unusable(fmt::format("{} cannot be written: {} of {} bytes: {}", named(temporary_directory()), file,
                       text.size(), why),
           "see to that");
}

void TemporaryFolder::blame(std::string_view what) const {
  const DirectoryState state = directory_state(path_);
  if (!state.exists) {
    unusable(fmt::format("{} is gone: somebody removed it while fuse used it: {}", path_, what),
             "keep what lies in " + named(temporary_directory()));
  }
  if (state.free_bytes < enough) {
    unusable(fmt::format("{} is full: {} bytes are free: {}", named(temporary_directory()), state.free_bytes,
                         what),
             "free some room there");
  }
}

}  // namespace fuse
