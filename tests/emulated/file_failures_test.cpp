// Building the kernels of layernorm for the emulated device with each call of the C library failing once: a
// named error, nothing is left behind, and the next attempt is right. SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <set>

#include "support/branches.hpp"
#include "support/catch.hpp"
#include "support/examples.hpp"
#include "support/failing_calls.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

namespace fs = std::filesystem;

struct Outcome {
  ErrorKind kind = ErrorKind::user;
  ErrorCode code = ErrorCode::ok;
  std::string text{};
  std::vector<std::byte> y{};
};

/// Two rows of layernorm on a device of its own.
Outcome attempt(const Graph& graph) {
  try {
    const Executable executable = compile(graph, Device::emulated());
    WholeRun run(executable, {{"B", 2}});
    for (Buffer& buffer : run.buffers) {
      buffer.upload(std::vector<std::byte>(static_cast<std::size_t>(buffer.view().bytes), std::byte{0x3f}));
    }
    run.run().throw_if_failed();
    const std::size_t y = executable.output_slot("y");
    std::vector<std::byte> result(static_cast<std::size_t>(run.prepared.bytes(y)));
    run.buffers[y].download(result);
    return {.y = std::move(result)};
  } catch (const Error& error) {
    return {error.kind(), error.code(), error.what()};
  }
}

/// What is said of a function that failed.
std::pair<ErrorCode, std::string> expected(const std::string& function) {
  if (function == "mkdtemp") return {ErrorCode::io, "cannot be written: No space left on device"};
  if (function == "fopen64") return {ErrorCode::io, "Too many open files"};
  if (function == "write" || function == "writev") return {ErrorCode::io, "No space left on device"};
  if (function == "posix_spawn") return {ErrorCode::io, "cannot start"};
  if (function == "dlopen") return {ErrorCode::broken_install, "cannot load what"};
  return {ErrorCode::ok,
          "no error"};  // waitpid: a child that left no status is judged by the file that it made
}

std::ptrdiff_t open_files() {
  return std::distance(fs::directory_iterator("/proc/self/fd"), fs::directory_iterator());
}

TEST_CASE("each file call of building layernorm fails once", "[emulated]") {
  std::string pattern = fs::temp_directory_path() / "fuse-calls-XXXXXX";
  REQUIRE(::mkdtemp(pattern.data()));
  const fs::path scratch = pattern;
  const Variable directory("TMPDIR", pattern.c_str());
  const Graph graph = example("layernorm");

  Outcome right;
  std::vector<std::string> calls;
  {
    const FailingCalls none;
    right = attempt(graph);
    calls = none.calls();
  }
  REQUIRE(right.text == "");
  // Which calls a file is written by is the C++ library's affair: those of Debian 13 are one fewer.
  REQUIRE(std::set<std::string>(calls.begin(), calls.end()).size() >= 5);
  const std::ptrdiff_t files = open_files();
  for (std::size_t n = 0; n < calls.size(); ++n) {
    Outcome outcome;
    {
      const FailingCalls failing(static_cast<int>(n) + 1);
      outcome = attempt(graph);
    }
    INFO("call " << n << ", " << calls[n] << ": " << outcome.text);
    CHECK(outcome.code == expected(calls[n]).first);
    if (outcome.code == ErrorCode::ok) {
      CHECK((outcome.y == right.y));
    } else {
      CHECK(outcome.kind == ErrorKind::runtime);
      CHECK(outcome.text.find(expected(calls[n]).second) != std::string::npos);
      CHECK(outcome.text.find("hint: ") != std::string::npos);
    }
    CHECK(fs::is_empty(scratch));
    CHECK(open_files() == files);
  }
  CHECK((attempt(graph).y == right.y));
  fs::remove_all(scratch);
}

}  // namespace
}  // namespace fuse::test
