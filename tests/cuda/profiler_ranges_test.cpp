// Ranges for profilers: a process that a fake profiler is attached to names its runs and their steps.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/access.hpp"
#include "cuda/fake_device.hpp"
#include "os/temporary_folder.hpp"
#include "runtime/execute/executable_impl.hpp"

namespace fuse::test {
namespace {

/// What the process with the profiler does, hidden, since NVTX looks for one once a process.
TEST_CASE("one run in each mode", "[.][nvtx_child]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  WholeRun run(compile(branches(2), Device::cuda()));
  REQUIRE(impl_of(run.workspace)->prepared->ranges);
  CHECK(run.run());
  run.workspace = run.prepared.workspace({ExecutionMode::graph});
  CHECK(run.run());
}

/// This program again, under its own name, with the profiler and the hidden test alone; its output goes to a
/// file.
int run_child(const std::string& profiler, const std::string& log, const std::string& output) {
  const pid_t child = ::fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    ::setenv("NVTX_INJECTION64_PATH", profiler.c_str(), 1);
    ::setenv("FAKE_NVTX_LOG", log.c_str(), 1);
    ::setenv("FUSE_CONTRACT", "0", 1);  // the fake profiler allocates
    // This process looks for leaks when it ends. LeakSanitizer now and then crashes: one chance to do so is
    // enough.
    const char* set = std::getenv("ASAN_OPTIONS");
    ::setenv("ASAN_OPTIONS", ((set ? set : "") + std::string(":detect_leaks=0")).c_str(), 1);
    if (std::freopen(output.c_str(), "w", stdout) && ::dup2(STDOUT_FILENO, STDERR_FILENO) >= 0) {
      ::execl("/proc/self/exe", "fuse_tests", "[nvtx_child]", static_cast<char*>(nullptr));
    }
    ::_exit(127);
  }
  int status = -1;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

TEST_CASE("a profiler sees a range a run, and in streams mode one a step", "[cuda][nvtx]") {
  const std::filesystem::path profiler = fake_directory() / "libfake_nvtx.so";
  if (!std::filesystem::exists(profiler)) {
    WARN("skipped: this build has no NVTX");
    return;
  }
  const TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  const int status = run_child(profiler, log, folder.path() + "/out");
  std::ifstream output(folder.path() + "/out");
  INFO(std::string(std::istreambuf_iterator<char>(output), {}));
  CHECK(status == 0);

  const FakeEnvironment environment;
  const Fakes fakes;
  const Prepared prepared = compile(branches(2), Device::cuda()).prepare();
  std::vector<std::string> expected{"domain fuse", "push run branches"};
  for (const StepTime& step : prepared.predicted().steps) {
    expected.push_back("push " + step.step);
    expected.emplace_back("pop");
  }
  for (const char* line : {"pop", "push run branches", "pop"}) expected.emplace_back(line);
  std::vector<std::string> seen;
  std::ifstream in(log);
  for (std::string line; std::getline(in, line);) seen.push_back(line);
  CHECK(seen == expected);
}

TEST_CASE("without a profiler there are no ranges", "[cuda][nvtx]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  WholeRun run(compile(branches(2), Device::cuda()));
  CHECK(!impl_of(run.workspace)->prepared->ranges);
}

}  // namespace
}  // namespace fuse::test
#endif
