// A device that fails in a run of a configuration: the exploration ends, and its file says what to avoid.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>

#include <algorithm>
#include <fuse/explore.hpp>

#include "base/access.hpp"
#include "cuda/fake_device.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/explore/space.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::test {
namespace {

constexpr int illegal_address = 700;
// The emulated device would find nothing, and takes minutes under sanitizers.
const ExploreOptions few{.max_options = 3, .max_cuts = 1, .samples = 5, .max_emulated_operations = 0};

/// The file of an exploration in which the launch of that number fails, and after which the device does.
std::string tuning_after_failure(const Graph& graph, const Fakes& fakes, int launch) {
  fakes.reset();
  const Device device = Device::cuda();
  Explorer explorer(graph, device, {}, few);
  ExplorerBuffers buffers(explorer);
  Stream stream = device.stream();
  fakes.fail_at("cuLaunchKernel", launch, illegal_address);
  bool failed = false;
  for (int run = 0; run < 40 && !explorer.done(); ++run) {
    const Status status = explorer.run(stream, buffers.views);
    failed = failed || !status || !stream.synchronize();
    explorer.wait_for_compiler();
  }
  CHECK(failed);
  return explorer.tuning().text();
}

TEST_CASE("loops in whose run the device failed are named in the file, and not tried again",
          "[explore][cuda]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Graph graph = softmax_graph(24, 2048);
  const Target target = backend_of(Device::cuda())->target();
  const auto options_of = [&](const CompileOptions& compile) {
    return runtime::space_of(ir_of(graph), target, compile, few).cuts.at(0).kernels.at(0).options;
  };
  const std::vector<schedule::KernelChoices> all = options_of({});
  REQUIRE(all.size() == 3);
  int of_default = 0, of_candidate = 0;
  for (int launch = 1; launch <= 14; ++launch) {
    INFO("launch " << launch);
    const std::string text = tuning_after_failure(graph, fakes, launch);
    const schedule::Decisions file = schedule::parse_decisions(text);
    if (file.avoided.empty()) {
      CHECK(file.kernels.at(0).choices == all[0]);  // what runs is the default
      ++of_default;
      continue;
    }
    CHECK(file.kernels.empty());  // the next exploration decides
    ++of_candidate;
    REQUIRE(file.avoided.size() == 1);
    const schedule::KernelChoices& bad = file.avoided[0].choices;
    CHECK((bad == all[1] || bad == all[2]));
    const std::vector<schedule::KernelChoices> left = options_of({.decisions = text});
    CHECK(left.size() == all.size());  // the next one takes its place
    CHECK(std::find(left.begin(), left.end(), bad) == left.end());
  }
  CHECK(of_default > 0);
  CHECK(of_candidate > 0);
}

}  // namespace
}  // namespace fuse::test
#endif
