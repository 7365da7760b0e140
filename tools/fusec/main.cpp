// fusec: the command-line face of fuse. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
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
    return fuse::fusec::parse_command_line(argc, argv)();
  } catch (const fuse::Error& error) {
    return fail(error.kind() == fuse::ErrorKind::user ? misused : failed, error.what());
  } catch (const std::bad_alloc&) {
    return fail(failed, "out of memory");
  } catch (const std::exception& error) {
    return fail(failed, error.what());
  }
}
