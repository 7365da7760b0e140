// An explorer compares runs step by step with one CUDA graph, which is timed whole, on the fake driver.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <cuda.h>

#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <map>
#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "cuda/fake_device.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"

namespace fuse::test {
namespace {

Graph product_and_softmax() {
  Graph g("scores");
  const Tensor x = g.input("x", f32, {16, 32}), w = g.input("w", f32, {32, 64});
  g.output("y", softmax(matmul(x, w)));
  return g;
}

std::vector<ExecutionMode> modes_of(const Graph& graph, const CompileOptions& how, bool has_graphs) {
  const runtime::Space space =
      runtime::space_of(ir_of(graph), target_profile("h200"), how, {}, {.has_graphs = has_graphs});
  return space.cuts.front().modes;
}

}  // namespace

TEST_CASE("the mode is a variable of plans of several steps, where a device has graphs", "[explore]") {
  const Graph graph = product_and_softmax();
  CHECK(modes_of(graph, {}, true).size() == 2);
  CHECK(modes_of(graph, {}, false).size() == 1);
  CHECK(modes_of(softmax_graph(24, 64), {}, true).size() == 1);
  PipelineOptions recorded;
  recorded.record = true;
  const Target target = target_profile("h200");
  schedule::Decisions own = decisions_of(run_pipeline(ir_of(graph), target, recorded), target);
  own.run = schedule::RunDecision{.mode = ExecutionMode::streams};
  CHECK(modes_of(graph, {.decisions = schedule::print(own)}, true).size() == 1);
}

TEST_CASE("a variant in graph mode is timed whole, and runs on streams while a stream is captured",
          "[explore][cuda]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Graph graph = product_and_softmax();
  const Device device = Device::cuda();
  const Explorer explorer(graph, device);
  const ExplorerBuffers buffers(explorer);
  Stream stream = device.stream();
  runtime::Variant variant(compile(graph, device), {}, ExecutionMode::graph);
  variant.make_measurable();
  variant.run_measured(stream, buffers.views, 1).throw_if_failed();
  stream.synchronize().throw_if_failed();
  CHECK(fakes.count("cuGraphLaunch") == 1);
  const auto seconds = variant.measured().value();
  CHECK(seconds.size() == 1);
  CHECK(seconds.at("") > 0);

  variant.run(stream, buffers.views, 1).throw_if_failed();
  CHECK(fakes.count("cuGraphLaunch") == 2);
  const auto begin =
      fake_function<decltype(&::cuStreamBeginCapture)>(fake_cuda_path(), "cuStreamBeginCapture_v2");
  const auto end = fake_function<decltype(&::cuStreamEndCapture)>(fake_cuda_path(), "cuStreamEndCapture");
  const auto destroy = fake_function<decltype(&::cuGraphDestroy)>(fake_cuda_path(), "cuGraphDestroy");
  const auto retain =
      fake_function<decltype(&::cuDevicePrimaryCtxRetain)>(fake_cuda_path(), "cuDevicePrimaryCtxRetain");
  const auto push = fake_function<decltype(&::cuCtxPushCurrent)>(fake_cuda_path(), "cuCtxPushCurrent_v2");
  const auto pop = fake_function<decltype(&::cuCtxPopCurrent)>(fake_cuda_path(), "cuCtxPopCurrent_v2");
  CUcontext context = nullptr;
  retain(&context, 0);
  push(context);
  const auto handle = static_cast<CUstream>(stream.native());
  REQUIRE(begin(handle, CU_STREAM_CAPTURE_MODE_GLOBAL) == CUDA_SUCCESS);
  variant.run(stream, buffers.views, 1).throw_if_failed();
  CHECK(fakes.count("cuGraphLaunch") == 2);
  CUgraph made = nullptr;
  CHECK(end(handle, &made) == CUDA_SUCCESS);
  destroy(made);
  pop(&context);
  const auto release =
      fake_function<decltype(&::cuDevicePrimaryCtxRelease)>(fake_cuda_path(), "cuDevicePrimaryCtxRelease_v2");
  release(0);
}

TEST_CASE("an explorer tries a graph, and its file has the mode that won", "[explore][cuda]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Device device = Device::cuda();
  const Graph graph = product_and_softmax();
  const ExploreOptions options{.max_options = 2, .max_cuts = 1, .samples = 5, .max_emulated_operations = 0};
  Explorer explorer(graph, device, {}, options);
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
  CHECK(explorer.progress().explored == explorer.progress().announced);
  CHECK(fakes.count("cuGraphLaunch") > 0);
  // To the fake driver a graph takes as long as its nodes.
  CHECK(explorer.tuning().text().find("\nrun {mode = streams}\n") != std::string::npos);

  const runtime::Space space =
      runtime::space_of(ir_of(graph), backend_of(device)->target(), {}, options, {.has_graphs = true});
  const schedule::Decisions by_graph = space.decisions({{runtime::mode_name, 1}});
  CHECK(schedule::print(by_graph).find("\nrun {mode = graph}\n") != std::string::npos);
  CHECK(space.text_of({{runtime::mode_name, 1}}, runtime::mode_name) == "mode graph");
}

}  // namespace fuse::test
#endif
