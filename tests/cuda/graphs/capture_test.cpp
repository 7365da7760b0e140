// What happens while the caller captures a stream: what allocates, loads or waits leaves the capture as it
// was; a workspace in graph mode is refused. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <cuda.h>

#include <thread>

#include "cuda/fake_device.hpp"

namespace fuse::test {
namespace {

// The driver as a caller has it; cuda.h's macros name the symbols.
#define FUSE_TEST_TEXT(name) #name
#define FUSE_TEST_SYMBOL(name) FUSE_TEST_TEXT(name)
#define FUSE_TEST_CALL(name) \
  decltype(&::name) p_##name = fake_function<decltype(&::name)>(fake_cuda_path(), FUSE_TEST_SYMBOL(name))

/// A caller with the context current, and a stream that it captures.
struct Caller {
  FUSE_TEST_CALL(cuDevicePrimaryCtxRetain);
  FUSE_TEST_CALL(cuDevicePrimaryCtxRelease);
  FUSE_TEST_CALL(cuCtxPushCurrent);
  FUSE_TEST_CALL(cuCtxPopCurrent);
  FUSE_TEST_CALL(cuStreamCreate);
  FUSE_TEST_CALL(cuStreamDestroy);
  FUSE_TEST_CALL(cuStreamBeginCapture);
  FUSE_TEST_CALL(cuStreamEndCapture);
  FUSE_TEST_CALL(cuGraphDestroy);
  FUSE_TEST_CALL(cuMemAlloc);
  CUcontext context = nullptr;
  CUstream stream = nullptr;
  CUgraph graph = nullptr;

  Caller() {
    p_cuDevicePrimaryCtxRetain(&context, 0);
    p_cuCtxPushCurrent(context);
    p_cuStreamCreate(&stream, 0);
  }
  ~Caller() {
    p_cuStreamDestroy(stream);
    p_cuCtxPopCurrent(&context);
    p_cuDevicePrimaryCtxRelease(0);
  }
  void begin() { REQUIRE(p_cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS); }
  CUresult end() {
    const CUresult ended = p_cuStreamEndCapture(stream, &graph);
    if (graph) p_cuGraphDestroy(std::exchange(graph, nullptr));
    return ended;
  }
};

TEST_CASE("the fake driver ends a capture that somebody allocates in", "[cuda][capture]") {
  const Fakes fakes;
  Caller caller;
  caller.begin();
  CUdeviceptr memory = 0;
  CHECK(caller.p_cuMemAlloc(&memory, 64) == CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
  CHECK(caller.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
}

TEST_CASE("what allocates, compiles or waits leaves the caller's capture as it was", "[cuda][capture]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Caller caller;
    const Device device = Device::cuda();
    const Executable executable = compile(branches(2), device);
    WholeRun run(executable);
    Stream captured = device.wrap_stream(caller.stream);
    caller.begin();
    const auto all = [&] {
      const Executable another = compile(branches(3), device);
      const Prepared prepared = another.prepare();
      for (const ExecutionMode mode : {ExecutionMode::streams, ExecutionMode::graph}) {
        Workspace workspace = prepared.workspace({mode});
        Session session(another, {}, {mode});
        const std::vector<float> x(64 * 64, 1.0f);
        session.set("x", std::as_bytes(std::span(x)));
        session.run();
        session.get("y");
      }
    };
    all();
    std::thread(all).join();
    REQUIRE(run.prepared.run(captured, run.views, run.workspace));
    CHECK(caller.end() == CUDA_SUCCESS);
    CHECK(fakes.misuse() == 0);
  }
  fakes.require_clean();
}

TEST_CASE("a workspace in graph mode cannot be captured, and says so", "[cuda][capture]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  {
    Caller caller;
    const Executable executable = compile(branches(2), Device::cuda());
    WholeRun run(executable, {}, {ExecutionMode::graph});
    Stream captured = executable.device().wrap_stream(caller.stream);
    caller.begin();
    const Status status = run.prepared.run(captured, run.views, run.workspace);
    CHECK(status.code() == ErrorCode::invalid_argument);
    CHECK(contains(status.message(), "the stream is being captured"));
    CHECK(contains(status.message(), "a workspace in streams mode"));
    CHECK(caller.end() == CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    CHECK(run.run());
    caller.begin();
    Workspace streams = run.prepared.workspace();
    CHECK(run.prepared.run(captured, run.views, streams));
    CHECK(caller.end() == CUDA_SUCCESS);
    CHECK(fakes.misuse() == 0);
  }
  fakes.require_clean();
}

}  // namespace
}  // namespace fuse::test
#endif
