// Configurations of an exploration keep every dependency between streams, and a wait that is missing is
// noticed. SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <random>

#include "../../examples/models/mi_lstm.hpp"
#include "../../examples/models/scrn.hpp"
#include "../../examples/models/sub_lstm.hpp"
#include "base/access.hpp"
#include "compile/compile.hpp"
#include "cuda/fake_device.hpp"
#include "plan/step_dependencies.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/explore/space.hpp"
#include "schedule/decisions/decisions.hpp"

namespace fuse::test {
namespace {

using schedule::StreamPlan;

std::vector<Graph> models() {
  std::vector<Graph> result;
  result.push_back(example::build_scrn_training(example::Scrn::small()));
  result.push_back(example::build_mi_lstm_training(example::MiLstm::small()));
  result.push_back(example::build_sub_lstm_training(example::SubLstm::small()));
  result.push_back(example::build_scrn(example::Scrn::small()));
  result.push_back(example::build_mi_lstm(example::MiLstm::small()));
  return result;
}

/// Any option of each variable.
explore::Configuration drawn(const runtime::Space& space, std::mt19937_64& random) {
  const auto pick = [&](std::size_t most) { return static_cast<int>(random() % most); };
  explore::Configuration result;
  const int cut = result[runtime::cut_name] = pick(space.cuts.size());
  const runtime::CutContext& context = space.cuts.at(static_cast<std::size_t>(cut));
  for (const runtime::ExploredMerge& merge : context.merges)
    result[runtime::merge_name(merge.key)] = pick(merge.options.size());
  for (const runtime::ExploredKernel& kernel : context.kernels)
    result[runtime::kernel_name(kernel.key)] = pick(kernel.options.size());
  for (const runtime::ExploredGemm& gemm : context.gemms)
    result[runtime::gemm_name(gemm.key)] = pick(static_cast<std::size_t>(gemm.algorithms));
  result[runtime::streams_name] = pick(context.streams.size());
  for (const runtime::ExploredEpoch& epoch : context.placing.epochs)
    result[runtime::epoch_name(epoch.key)] = pick(epoch.options.size());
  return result;
}

TEST_CASE("a wait that is missing in any configuration is noticed",
          "[explore][cuda][streams][not-sanitized]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const unsigned seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937_64 random(seed);
  const Device device = Device::cuda();
  const Target& target = backend_of(device)->target();
  int configurations = 0, placed = 0, on_streams = 0, waits = 0;
  for (const Graph& graph : models()) {
    INFO(ir_of(graph).name);
    const runtime::Space space =
        runtime::space_of(ir_of(graph), target, {}, {.bits = Bits::any, .max_options = 2, .max_cuts = 4},
                          {.gemm_algorithms = 2});
    for (int i = 0; i < 20; ++i, ++configurations) {
      CompileOptions how;
      const explore::Configuration configuration = drawn(space, random);
      how.decisions = schedule::print(space.decisions(configuration));
      how.skip_unfit_decisions = space.is_partial(configuration);
      how.cache = false;
      const runtime::StreamOf streams = space.streams_of(configuration);
      placed += !streams.empty();
      const Executable executable =
          runtime::compile_candidate(graph, device, how, [&](PipelineOptions& options) {
            options.place =
                runtime::placing(streams, runtime::DispatchOrder::by_cost, ExecutionMode::automatic);
          });
      const Workspace workspace = executable.prepare().workspace();
      const Prepared::Impl& prepared = *impl_of(workspace)->prepared;
      REQUIRE(prepared.as_planned);
      std::vector<schedule::Task> tasks;
      for (const auto& after : schedule::certain_dependencies(stages_of(executable).plan))
        tasks.push_back({.after = after});
      const StreamPlan& plan = prepared.streams;
      REQUIRE(tasks.size() == plan.order.size());
      schedule::verify(tasks, plan, target);
      on_streams += !plan.waits.empty();
      for (std::size_t at = 0; at < plan.waits.size(); ++at, ++waits) {
        StreamPlan without = plan;
        without.waits.erase(without.waits.begin() + static_cast<std::ptrdiff_t>(at));
        CHECK_THROWS_AS(schedule::verify(tasks, without, target), Error);
      }
    }
  }
  CHECK(configurations == 100);
  CHECK(placed > 30);
  CHECK(on_streams > 30);
  CHECK(waits > 300);
}

}  // namespace
}  // namespace fuse::test
#endif
