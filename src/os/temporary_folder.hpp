// A private folder in the temporary directory, and what can be wrong with a directory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace fuse {

/// What a directory offers this process; all false and 0 where it does not exist.
struct DirectoryState {
  bool exists = false;
  bool writable = false;
  bool read_only = false;   ///< its file system is mounted so
  bool executable = false;  ///< its file system is not mounted noexec: what is built there can be loaded
  std::int64_t free_bytes = 0;
};
DirectoryState directory_state(const std::string& path);

/// TMPDIR, else /tmp.
std::string temporary_directory();

/// Removed with its contents on destruction. Made for code that is built and loaded: throws Error{runtime,
/// io}, which names the directory and what is wrong with it, where it is missing, not writable, or mounted
/// noexec.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  const std::string& path() const { return path_; }
  /// Error{runtime, io} where not all of it could be written.
  void write(const std::string& file, std::string_view text) const;
  /// Throws where the folder is why `what` failed: it is gone, or has so little room that a program may have
  /// failed because of it.
  void blame(std::string_view what) const;

 private:
  std::string path_;
};

}  // namespace fuse
