// SPDX-License-Identifier: Apache-2.0
#include "support/failing_calls.hpp"

#include <dlfcn.h>
#include <sys/types.h>
#include <sys/uio.h>

#include <atomic>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <mutex>

namespace fuse::test {
namespace {

std::atomic<bool> watching = false;
std::mutex mutex;
std::vector<std::string> seen;  // guarded by the mutex, as is:
int failing = 0;
bool deadly = false;

/// Whether this call of `function` is the one that fails.
bool fails(const char* function) {
  if (!watching) return false;
  const std::lock_guard lock(mutex);
  seen.emplace_back(function);
  const bool now = static_cast<int>(seen.size()) == failing;
  if (now && deadly) ::raise(SIGKILL);
  return now;
}

template <class F>
F next(const char* function) {
  return reinterpret_cast<F>(::dlsym(RTLD_NEXT, function));
}

}  // namespace

FailingCalls::FailingCalls(int nth) {
  const std::lock_guard lock(mutex);
  seen.clear();
  failing = nth;
  watching = true;
}
FailingCalls::~FailingCalls() { watching = false; }

void FailingCalls::die_at(int nth) {
  const std::lock_guard lock(mutex);
  seen.clear();
  failing = nth;
  deadly = true;
  watching = true;
}

std::vector<std::string> FailingCalls::calls() const {
  const std::lock_guard lock(mutex);
  return seen;
}

}  // namespace fuse::test

// By their assembler names, since headers declare them with attributes of their own.
#define FUSE_TEST_CALL(result, name, parameters)              \
  extern "C" result failing_##name parameters __asm__(#name); \
  result failing_##name parameters
#define FUSE_TEST_FAIL(name, number, value) \
  if (fuse::test::fails(#name)) {           \
    errno = number;                         \
    return value;                           \
  }                                         \
  static const auto real = fuse::test::next<decltype(&failing_##name)>(#name)

FUSE_TEST_CALL(char*, mkdtemp, (char* pattern)) {
  FUSE_TEST_FAIL(mkdtemp, ENOSPC, nullptr);
  return real(pattern);
}
FUSE_TEST_CALL(std::FILE*, fopen64, (const char* path, const char* mode)) {
  FUSE_TEST_FAIL(fopen64, EMFILE, nullptr);
  return real(path, mode);
}
FUSE_TEST_CALL(ssize_t, write, (int file, const void* data, std::size_t bytes)) {
  FUSE_TEST_FAIL(write, ENOSPC, -1);
  return real(file, data, bytes);
}
FUSE_TEST_CALL(ssize_t, writev, (int file, const iovec* pieces, int count)) {
  FUSE_TEST_FAIL(writev, ENOSPC, -1);
  return real(file, pieces, count);
}
FUSE_TEST_CALL(int, fsync, (int file)) {
  FUSE_TEST_FAIL(fsync, EIO, -1);
  return real(file);
}
FUSE_TEST_CALL(int, rename, (const char* from, const char* to)) {
  FUSE_TEST_FAIL(rename, ENOSPC, -1);
  return real(from, to);
}
FUSE_TEST_CALL(int, posix_spawn,
               (pid_t * child, const char* path, const void* actions, const void* attributes,
                char* const* arguments, char* const* environment)) {
  if (fuse::test::fails("posix_spawn")) return EAGAIN;
  static const auto real = fuse::test::next<decltype(&failing_posix_spawn)>("posix_spawn");
  return real(child, path, actions, attributes, arguments, environment);
}
/// As where the application lets children vanish: the child has ended, and left no status.
FUSE_TEST_CALL(pid_t, waitpid, (pid_t child, int* status, int options)) {
  static const auto real = fuse::test::next<decltype(&failing_waitpid)>("waitpid");
  const pid_t ended = real(child, status, options);
  if (!fuse::test::fails("waitpid")) return ended;
  errno = ECHILD;
  return -1;
}
FUSE_TEST_CALL(void*, dlopen, (const char* path, int mode)) {
  FUSE_TEST_FAIL(dlopen, ENOMEM, nullptr);
  return real(path, mode);
}
