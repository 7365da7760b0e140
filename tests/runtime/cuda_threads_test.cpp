// Threads that share an executable on the fake driver, each with a workspace and a stream of its own.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <atomic>
#include <map>
#include <thread>

#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

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
    CHECK(fakes.counted("cuMemAlloc") == threads * 3);  // two buffers and a workspace each
    CHECK(fakes.counted("cuStreamSynchronize") == 0);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
