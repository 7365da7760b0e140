// Prepared::run on the fake driver: which calls it makes, on which streams, and what a failing one does.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "runtime/device/hot_path_check.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

TEST_CASE("a run launches its steps on streams, and makes one context current once", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable =
        compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
    WholeRun run(executable);
    REQUIRE(run.prepared.streams() > 1);
    for (int again = 0; again < 2; ++again) {
      const int before = fakes.call_count();
      const auto calls = [&](const std::string& name) {
        int n = 0;
        for (int i = before; i < fakes.call_count(); ++i) n += std::string(fakes.call(i)).starts_with(name);
        return n;
      };
      REQUIRE(run.run());
      CHECK(calls("cuCtxPushCurrent") == 1);
      CHECK(calls("cuCtxPopCurrent") == 1);
      CHECK(calls("cuLaunchKernel") == run.prepared.launches());
      CHECK(calls("cuStreamWaitEvent") >= run.prepared.streams() - 1);
      CHECK(calls("cuEventRecord") >= 1);
      CHECK(calls("cuMem") == 0);
      CHECK(calls("cuStreamSynchronize") == 0);
      CHECK(calls("cuEventCreate") == 0);
      CHECK(calls("cuStreamCreate") == 0);
    }
    CHECK(fakes.depth() == 0);
  }
  fakes.require_clean();
}

TEST_CASE("one stream needs no events", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  CompileOptions options;
  options.streams = 1;
  const Executable executable = compile(branches(), Device::cuda(), options);
  WholeRun run(executable);
  CHECK(run.prepared.streams() == 1);
  REQUIRE(run.run());
  CHECK(fakes.count("cuStreamWaitEvent") == 0);
  CHECK(fakes.count("cuStreamCreate") == 1);
  CHECK(error_info([&] {
          CompileOptions none;
          none.streams = 0;
          compile(branches(), Device::reference(), none);
          compile(branches(), Device::cuda(), none);
        }).message == "compile: streams is 0");
}

TEST_CASE("the caller's capture takes all streams of a run", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable =
        compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
    WholeRun run(executable);
    REQUIRE(run.prepared.streams() > 1);
    const auto work =
        backend_of(executable.device())->capture(queue_of(run.stream), [&] { return run.run(); });
    REQUIRE(work);
    REQUIRE(work->launch(queue_of(run.stream)));
    CHECK(fakes.last_call() == std::string("cuCtxPopCurrent"));
    CHECK(fakes.find_call("cuGraphLaunch") ==
          "cuGraphLaunch " + std::to_string(run.prepared.launches() + run.prepared.gemms()));
  }
  fakes.require_clean();
}

TEST_CASE("each driver call of a run fails once: a named status, and the next run is right",
          "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    const Executable executable =
        compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
    WholeRun run(executable);
    int before = fakes.call_count();
    REQUIRE(run.run());
    const int calls = fakes.call_count() - before;
    REQUIRE(calls > 10);
    for (int nth = 1; nth <= calls; ++nth) {
      before = fakes.call_count();
      fakes.fail_at("", nth, 999);
      const Status status = run.run();
      INFO("call " << nth << ": " << fakes.call(before + nth - 1) << ": " << status.message());
      CHECK(status.code() == ErrorCode::driver);
      CHECK(contains(status.message(), "CUDA_ERROR_UNKNOWN (999)"));
      CHECK(fakes.depth() == 0);
      before = fakes.call_count();
      CHECK(run.run());
      CHECK(fakes.call_count() - before == calls);
    }
  }
  fakes.require_clean();
}

TEST_CASE("a call of packing that fails is the status of packing", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Graph g("packed");
    const Tensor x = g.input("x", f32, {64, 64});
    g.output("z", matmul(x, exp(g.parameter("w", f32, {64, 64}))));
    const Executable executable = compile(g, Device::cuda());
    WholeRun run(executable);
    const auto pack = [&] { return run.prepared.pack(run.stream, run.views, run.packed.view()); };
    int before = fakes.call_count();
    REQUIRE(pack());
    const int calls = fakes.call_count() - before;
    REQUIRE(fakes.count("cuLaunchKernel") > 0);
    for (int nth = 1; nth <= calls; ++nth) {
      before = fakes.call_count();
      fakes.fail_at("", nth, 999);
      const Status status = pack();
      INFO("call " << nth << ": " << fakes.call(before + nth - 1) << ": " << status.message());
      CHECK(status.code() == ErrorCode::driver);
      CHECK(contains(status.message(), "CUDA_ERROR_UNKNOWN (999)"));
      CHECK(fakes.depth() == 0);
      CHECK(pack());
    }
  }
  fakes.require_clean();
}

TEST_CASE("what a run must not do makes it fail under FUSE_CONTRACT", "[cuda][streams]") {
  using runtime::contract::forbid;
  using runtime::contract::HotPath;
  REQUIRE(runtime::contract::checked());
  forbid("is nothing outside of a run");
  {
    const HotPath hot(true);
    CHECK(!hot.broken());
    forbid("waits");
    forbid("allocates");
    CHECK(std::string(hot.broken()) == "waits");
  }
  {
    const HotPath unwatched(false);
    forbid("waits");
    CHECK(!unwatched.broken());
  }
  if (sanitized()) return;  // it has operators new and delete of its own
  const HotPath hot(true);
  void* const made = ::operator new(8);
  const char* const broken = hot.broken();
  ::operator delete(made);
  CHECK(std::string(broken) == "allocates");
}

TEST_CASE("a workspace follows its run from one stream to another only when that is over",
          "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Executable executable =
      compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
  WholeRun run(executable);
  REQUIRE(run.run());
  run.stream = executable.device().stream();
  fakes.fail_at("cuEventQuery", 1, 600);  // CUDA_ERROR_NOT_READY
  const Status status = run.run();
  CHECK(status.code() == ErrorCode::invalid_argument);
  CHECK(status.message() == "the workspace is in use by a run on another stream, which nobody waited for");
  CHECK(run.run());
}

TEST_CASE("other buffers are checked and bound, the same ones are not looked at again", "[cuda][streams]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Executable executable =
      compile(branches(), Device::cuda(), {.experiments = experiments({.layers = 2})});
  WholeRun run(executable);
  REQUIRE(run.run());
  const Buffer other = executable.device().allocate(run.prepared.bytes(0));
  const BufferView first = std::exchange(run.views[0], other.view());
  REQUIRE(run.run());
  for (const runtime::Argument& argument : impl_of(run.workspace)->arguments)
    CHECK(argument.address != first.address);
  run.views[0].bytes = 4;
  CHECK(contains(run.run().message(), "buffer of input 'x' has 4 bytes"));
  run.views[0] = first;
  CHECK(run.run());
}

}  // namespace
}  // namespace fuse::test
#endif
