// A file system of one file, whose text is the result of check_rows; libfuse's headers, of version 2 or 3.
// SPDX-License-Identifier: Apache-2.0
#ifdef LIBFUSE_3
#define FUSE_USE_VERSION 31
#include <fuse3/fuse.h>
#else
#define FUSE_USE_VERSION 26
#include <fuse/fuse.h>
#endif

#include <algorithm>
#include <cstring>
#include <string>

#include "../rows.hpp"
#include "filesystem.hpp"

namespace {

int read_rows(const char* path, char* buffer, std::size_t size, off_t offset, fuse_file_info*) {
  if (std::strcmp(path, "/rows") != 0) return -1;
  const std::string text = check_rows();
  const std::size_t begin = std::min(static_cast<std::size_t>(offset), text.size());
  const std::size_t count = std::min(size, text.size() - begin);
  std::memcpy(buffer, text.data() + begin, count);
  return static_cast<int>(count);
}

}  // namespace

int libfuse_version() { return fuse_version(); }

std::string read_file(const char* path) {
  fuse_operations operations{};
  operations.read = read_rows;
  char buffer[256];
  const int count = operations.read(path, buffer, sizeof buffer, 0, nullptr);
  return count < 0 ? "no such file" : std::string(buffer, static_cast<std::size_t>(count));
}
