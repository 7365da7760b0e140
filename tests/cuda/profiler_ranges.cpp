// Ranges for profilers: a process that a fake profiler is attached to names its runs and their steps.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "cuda/fake_device.hpp"
#include "runtime/executable_impl.hpp"
#include "runtime/temporary_folder.hpp"

namespace fuse::test {
namespace {

/// What the process with the profiler does, hidden, since NVTX looks for one once a process.
TEST_CASE("one run in each mode", "[.][nvtx_child]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  WholeRun run(compile(branches(2), Device::cuda()));
  REQUIRE(run.workspace.impl()->prepared->ranges);
  CHECK(run.run());
  run.workspace = run.prepared.workspace({ExecutionMode::graph});
  CHECK(run.run());
}

TEST_CASE("a profiler sees a range a run, and in streams mode one a step", "[cuda][nvtx]") {
  const std::filesystem::path profiler = fake_directory() / "libfake_nvtx.so";
  if (!std::filesystem::exists(profiler)) {
    WARN("skipped: this build has no NVTX");
    return;
  }
  const runtime::TemporaryFolder folder;
  const std::string log = folder.path() + "/log";
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  const Variable injection("NVTX_INJECTION64_PATH", profiler.c_str());
  const Variable contract("FUSE_CONTRACT", "0");  // the fake profiler allocates
  const Variable file("FAKE_NVTX_LOG", log.c_str());
  CHECK(std::system(("'" + self + "' '[nvtx_child]' > '" + folder.path() + "/out" + "'").c_str()) == 0);

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
  CHECK(!run.workspace.impl()->prepared->ranges);
}

}  // namespace
}  // namespace fuse::test
#endif
