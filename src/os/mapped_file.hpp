// Files as RAII values: positioned reading, read-only mapping, and writing that is all or nothing.
// Every failure is a fuse::Error{io} that names the file and the system's reason.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace fuse {

/// A regular file open for reading; pipes, devices and directories are refused, since they have no size.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  InputFile(InputFile&& other) noexcept;
  InputFile& operator=(InputFile&&) = delete;
  ~InputFile();

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  ///< the size when it was opened
  int descriptor() const { return descriptor_; }
  /// Fills `to` from `offset` on; an error if the file has become shorter.
  void read(std::uint64_t offset, std::span<std::byte> to) const;

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

/// The bytes of a file, mapped read only. The file may be replaced (renamed over) while mapped; changing it
/// in place changes the bytes, and shortening it makes the lost pages fault.
class MappedFile {
 public:
  explicit MappedFile(const std::string& path);
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&&) = delete;
  ~MappedFile();

  std::span<const std::byte> bytes() const { return {static_cast<const std::byte*>(address_), size_}; }

 private:
  void* address_ = nullptr;  // null for an empty file, which cannot be mapped
  std::size_t size_ = 0;
};

/// Writes the pieces one after another into a temporary file beside `path`, then renames it to `path`: a
/// reader sees the old file or the whole new one. Refuses a `path` that is there and is not a regular file.
void write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace fuse
