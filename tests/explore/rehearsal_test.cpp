// Configurations for a GPU, here a fake one that runs nothing, run on the emulated device first.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA && FUSE_COMPILER_HAS_EMULATED
#include <cstdint>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "cuda/fake_device.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "schedule/decisions/decisions.hpp"
#include "support/variable.hpp"

namespace fuse::test {
namespace {

const ExploreOptions three_options{.max_options = 3, .max_cuts = 1, .samples = 5};

/// A softmax, and a kernel of the user's that writes so many elements, of 64.
Graph graph_with_custom(std::int64_t written) {
  CustomKernel kernel;
  kernel.name = "fill";
  kernel.source = R"(FUSE_KERNEL(32) fill(global<const float> x, global<float> y, long long n) {
  for (long long i = threadIdx.x; i < n; i += 32) store(y, i, load(x, i % 64));
}
)";
  kernel.grid = 1;
  kernel.threads = 32;
  kernel.extents = {written};
  Graph graph = softmax_graph(24, 2048);
  graph.output("z", custom_call(kernel, {graph.input("v", f32, {64})}, f32, {64}));
  return graph;
}

ExploreProgress explored(const Graph& graph, const ExploreOptions& options) {
  const Device device = Device::cuda();
  Explorer explorer(graph, device, {}, options);
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  return explorer.progress();
}

}  // namespace

TEST_CASE("an emulated device is like a GPU: what is compiled for one is compiled for the other",
          "[explore][cuda][emulated]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Device gpu = Device::cuda();
  const Device emulated = Device::emulated_like(gpu, {});
  CHECK(emulated.kind() == DeviceKind::emulated);
  CHECK(schedule::target_text(backend_of(emulated)->target()) ==
        schedule::target_text(backend_of(gpu)->target()));
  CHECK(emulated.why().find(gpu.name()) != std::string::npos);
  const Graph graph = softmax_graph(24, 2048);
  CHECK(compile(graph, emulated).source() == compile(graph, gpu).source());
  CHECK_THROWS_AS(Device::emulated_like(Device::cpu(), {}), Error);
}

TEST_CASE("a configuration for a GPU runs on the emulated device first", "[explore][cuda][emulated]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const ExploreProgress progress = explored(graph_with_custom(64), three_options);
  CHECK(progress.dropped.empty());
  CHECK(progress.built > 0);
  CHECK(progress.emulated >= progress.built);
  CHECK(progress.not_emulated.empty());
}

TEST_CASE("what the checker of accesses finds drops the configuration", "[explore][cuda][emulated]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const ExploreProgress progress = explored(graph_with_custom(65), three_options);
  CHECK(progress.built == 0);
  REQUIRE(progress.dropped.size() == 5);  // the default alone is left, of loops, of streams and of modes
  for (const std::string& each : progress.dropped) {
    INFO(each);
    CHECK(each.find("on the emulated device: ") != std::string::npos);
    CHECK(each.find("fill") != std::string::npos);
    // The option is named, too.
    CHECK((each.find(": {nest = ") != std::string::npos || each.find("streams: ") != std::string::npos ||
           each.starts_with("mode graph: ")));
  }
}

TEST_CASE("a graph that is too large, and a machine without a compiler, have a reason instead of a rehearsal",
          "[explore][cuda][emulated]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  ExploreOptions options = three_options;
  options.max_emulated_operations = 1000;
  const ExploreProgress large = explored(graph_with_custom(65), options);
  CHECK(large.built > 0);
  CHECK(large.emulated == 0);
  CHECK(large.not_emulated.find("operations, and at most 1e+03 are emulated") != std::string::npos);

  const Variable no_compiler("FUSE_CXX", "/nonexistent/c++");
  const ExploreProgress without = explored(graph_with_custom(65), three_options);
  CHECK(without.built > 0);
  CHECK(without.emulated == 0);
  CHECK(without.not_emulated.find("/nonexistent/c++") != std::string::npos);

  options.max_emulated_operations = 0;
  CHECK(explored(graph_with_custom(64), options).not_emulated.empty());
}

}  // namespace fuse::test
#endif
