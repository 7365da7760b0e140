// SPDX-License-Identifier: Apache-2.0
#include "os/mapped_file.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <fuse/error.hpp>
#include <limits>
#include <string_view>
#include <system_error>
#include <utility>

#include "base/quoting.hpp"

namespace fuse {
namespace {

constexpr std::size_t largest_transfer = std::size_t{1} << 30;  // Linux moves at most 2 GiB per call

[[noreturn]] void throw_io(std::string_view action, const std::string& path, std::string_view reason) {
  throw Error(
      {.kind = ErrorKind::user,
       .code = ErrorCode::io,
       .message = "cannot " + std::string(action) + ' ' + in_quotes(path) + ": " + std::string(reason)});
}

[[noreturn]] void throw_errno(std::string_view action, const std::string& path, int error) {
  throw_io(action, path, std::generic_category().message(error));
}

// A path with a zero byte would name another file than the one the caller wrote.
void check_path(std::string_view action, const std::string& path) {
  if (path.empty()) throw_io(action, path, "the path is empty");
  if (path.find('\0') != std::string::npos) throw_io(action, path, "the path has a zero byte");
}

// Removes the temporary file unless it was renamed into place.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) {
    // O_EXCL settles races between threads and with files left behind by a process that died.
    const std::string prefix = target + ".tmp-" + std::to_string(::getpid()) + '-';
    for (int attempt = 0; attempt < 10000; ++attempt) {
      path_ = prefix + std::to_string(attempt);
      descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
      if (descriptor_ >= 0) return;
      if (errno != EEXIST && errno != EINTR) throw_errno("write", target, errno);
    }
    throw_io("write", target, "no free name for a temporary file beside it");
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  ~TemporaryFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
    if (!path_.empty()) ::unlink(path_.c_str());
  }

  void write(const std::string& target, std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t written = ::write(descriptor_, bytes.data(), std::min(bytes.size(), largest_transfer));
      if (written < 0 && errno == EINTR) continue;
      if (written < 0) throw_errno("write", target, errno);
      bytes = bytes.subspan(static_cast<std::size_t>(written));
    }
  }

  void commit(const std::string& target) {
    // Without the flush a crash after the rename could leave the new name with no content.
    if (::fsync(descriptor_) != 0 && errno != EINVAL) throw_errno("write", target, errno);
    if (::close(std::exchange(descriptor_, -1)) != 0) throw_errno("write", target, errno);
    if (::rename(path_.c_str(), target.c_str()) != 0) throw_errno("write", target, errno);
    path_.clear();
  }

 private:
  std::string path_;
  int descriptor_ = -1;
};

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  check_path("read", path);
  // Without O_NONBLOCK, opening a pipe nobody writes to would wait for ever.
  do descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  while (descriptor_ < 0 && errno == EINTR);
  if (descriptor_ < 0) throw_errno("read", path, errno);
  struct stat info {};
  const int failed = ::fstat(descriptor_, &info) != 0 ? errno : 0;
  if (failed || !S_ISREG(info.st_mode)) {
    ::close(std::exchange(descriptor_, -1));
    if (failed) throw_errno("read", path, failed);
    throw_io("read", path, "it is not a regular file");
  }
  size_ = static_cast<std::uint64_t>(info.st_size);
}

InputFile::InputFile(InputFile&& other) noexcept
    : path_(std::move(other.path_)), descriptor_(std::exchange(other.descriptor_, -1)), size_(other.size_) {}

InputFile::~InputFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void InputFile::read(std::uint64_t offset, std::span<std::byte> to) const {
  while (!to.empty()) {
    const ssize_t got =
        ::pread(descriptor_, to.data(), std::min(to.size(), largest_transfer), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) throw_errno("read", path_, errno);
    if (got == 0) throw_io("read", path_, "it became shorter while it was read");
    to = to.subspan(static_cast<std::size_t>(got));
    offset += static_cast<std::uint64_t>(got);
  }
}

MappedFile::MappedFile(const std::string& path) {
  const InputFile file(path);
  if (file.size() > std::numeric_limits<std::size_t>::max()) throw_errno("map", path, EFBIG);
  size_ = static_cast<std::size_t>(file.size());
  if (size_ == 0) return;
  void* address = ::mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file.descriptor(), 0);
  if (address == MAP_FAILED) throw_errno("map", path, errno);
  address_ = address;
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : address_(std::exchange(other.address_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile::~MappedFile() {
  if (address_) ::munmap(address_, size_);
}

void write_file_atomically(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  check_path("write", path);
  struct stat info {};
  if (::stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode)) {
    throw_io("write", path, "it is there and is not a regular file");
  }
  TemporaryFile file(path);
  for (const auto piece : pieces) file.write(path, piece);
  file.commit(path);
}

}  // namespace fuse
