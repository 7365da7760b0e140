// fusec: the command-line face of fuse. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <exception>
#include <fuse/error.hpp>
#include <new>

#include "command_line.hpp"

namespace {

constexpr int failed = 1;  // a check failed, or the machine did
constexpr int misused = 2;

int fail(int status, const char* what) {
  std::fflush(stdout);
  fmt::print(stderr, "error: {}\n", what);
  return status;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const int status = fuse::fusec::parse_command_line(argc, argv)();
    errno = 0;  // what is still in the buffer goes out now, or not at all
    if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0)
      return fail(failed, fmt::format("the standard output cannot be written: {}",
                                      errno == 0 ? "an earlier write failed" : std::strerror(errno))
                              .c_str());
    return status;
  } catch (const fuse::Error& error) {
    return fail(error.kind() == fuse::ErrorKind::user ? misused : failed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(failed, "out of memory");
  } catch (const std::exception& error) {
    return fail(failed, error.what());
  }
}
