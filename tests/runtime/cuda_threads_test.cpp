// Threads that share an executable on the fake driver, each with a workspace and a stream of its own.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <atomic>
#include <map>
#include <thread>

#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

TEST_CASE("threads: 16 share one prepared run on the fake driver, each with a graph of its own",
          "[runtime][cuda][graph]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  constexpr int threads = 16, runs = 10000;
  {
    const Executable executable = compile(branches(2), Device::cuda());
    const Prepared prepared = executable.prepare();
    std::atomic<int> failed = 0;
    fakes.only_count(true);
    {
      std::vector<std::jthread> group;
      for (int t = 0; t < threads; ++t) {
        group.emplace_back([&] {
          WholeRun run(executable);
          run.workspace = prepared.workspace({ExecutionMode::graph});
          for (int i = 0; i < runs; ++i) failed += !prepared.run(run.stream, run.views, run.workspace);
        });
      }
    }
    fakes.only_count(false);
    CHECK(failed == 0);
    CHECK(fakes.counted("cuGraphLaunch") == threads * runs);
    CHECK(fakes.counted("cuGraphInstantiateWithFlags") == threads);
    CHECK(fakes.counted("cuLaunchKernel") == 0);
  }
  fakes.require_clean();
}

TEST_CASE("threads: 16 share one executable on the fake driver", "[runtime][cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  constexpr int threads = 16, runs = 10000;
  {
    const Executable executable = compile(branches(2), Device::cuda());
    std::atomic<int> failed = 0;
    std::int64_t launches = 0;
    fakes.only_count(true);
    {
      std::vector<std::jthread> group;
      for (int t = 0; t < threads; ++t) {
        group.emplace_back([&] {
          WholeRun run(executable);
          for (int i = 0; i < runs; ++i) failed += !run.run();
        });
      }
    }
    fakes.only_count(false);
    launches = executable.prepare().launches();
    CHECK(failed == 0);
    CHECK(fakes.counted("cuLaunchKernel") == threads * runs * launches);
    CHECK(fakes.counted("cuCtxPushCurrent") == fakes.counted("cuCtxPopCurrent"));
    CHECK(fakes.counted("cuMemAlloc") == threads * 4);  // three buffers and a workspace each
    CHECK(fakes.counted("cuStreamSynchronize") == 0);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
