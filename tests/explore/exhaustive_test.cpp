// What an exploration finds, against every configuration of its space, by costs that are planted.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <string_view>

#include "base/access.hpp"
#include "compile/compile.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/space.hpp"
#include "runtime/explore/variant.hpp"
#include "schedule/decisions/decisions.hpp"
#include "support/sanitized.hpp"

namespace fuse::test {
namespace {

using explore::Configuration;
using runtime::ClockedWork;

/// Kernels of two branches that meet.
Graph two_branches() {
  Graph g("branches");
  const Tensor x = g.input("x", f32, {16, 32}), a = g.parameter("a", f32, {32, 24}),
               b = g.parameter("b", f32, {32, 24}), c = g.parameter("c", f32, {24, 24});
  const Tensor left = softmax(matmul(x, a), -1), right = tanh(matmul(exp(x * 0.1), b));
  g.output("y", matmul(left, c) + matmul(right, c, {.transpose_b = true}));
  return g;
}

std::uint64_t mixed(std::uint64_t value) {
  value = (value ^ (value >> 31)) * 0x9E3779B97F4A7C15u;
  return value ^ (value >> 29);
}

/// From 1 to 5 us, drawn from what is launched, and more beside others.
runtime::PlantedCost drawn_cost(std::uint64_t seed) {
  return [seed](const ClockedWork& work) {
    std::uint64_t hash = mixed(seed);
    const auto add = [&](std::int64_t value) { hash = mixed(hash + static_cast<std::uint64_t>(value)); };
    add(work.bytes);
    add(work.residency.blocks);
    add(work.residency.threads);
    if (work.gemm) add(work.gemm->m + 1000 * work.gemm->n + 1000000 * work.gemm->algorithm);
    const double alone = 1e-6 * (1 + static_cast<double>(hash % 1000) / 250);
    return alone * (1 + 0.15 * work.beside);
  };
}

/// Calls it for each configuration of the space.
template <class Each>
void each_configuration(const runtime::Space& space, const Each& each) {
  for (std::size_t cut = 0; cut < space.cuts.size(); ++cut) {
    const runtime::CutContext& context = space.cuts[cut];
    std::vector<std::pair<std::string, std::size_t>> variables;
    for (const runtime::ExploredKernel& kernel : context.kernels)
      variables.emplace_back(runtime::kernel_name(kernel.key), kernel.options.size());
    for (const runtime::ExploredGemm& gemm : context.gemms)
      variables.emplace_back(runtime::gemm_name(gemm.key), static_cast<std::size_t>(gemm.algorithms));
    variables.emplace_back(runtime::streams_name, context.streams.size());
    std::size_t count = 1;
    for (const auto& [name, options] : variables) count *= options;
    for (std::size_t number = 0; number < count; ++number) {
      Configuration configuration = {{runtime::cut_name, static_cast<int>(cut)}};
      std::size_t left = number;
      for (const auto& [name, options] : variables) {
        configuration[name] = static_cast<int>(left % options);
        left /= options;
      }
      each(configuration);
    }
  }
}

double seconds_of(const Graph& graph, const Device& device, const schedule::Decisions& decisions,
                  const ExplorerBuffers& buffers) {
  runtime::Variant variant(
      runtime::compile_candidate(graph, device, {.decisions = schedule::print(decisions)}), {});
  return measured_seconds(variant, buffers.views);
}

}  // namespace

TEST_CASE("what is found is within 3% of the best of all configurations", "[explore][emulated]") {
  const Graph graph = two_branches();
  // Two devices, so that no queue of one is at work beside the other's.
  const Device device = clocked_device(), explored = clocked_device();
  const ExploreOptions options{
      .bits = Bits::any, .max_options = 2, .max_cuts = 2, .max_groups = 0, .max_epochs = 0};
  const runtime::Space space = runtime::space_of(ir_of(graph), backend_of(device)->target(), {}, options,
                                                 {.gemm_algorithms = backend_of(device)->gemm_algorithms()});
  int gained = 0;
  const int seeds = fewer(4, 4);
  for (int seed = 1; seed <= seeds; ++seed) {
    INFO("seed " << seed);
    for (const Device* each : {&device, &explored})
      runtime::plant_costs(*backend_of(*each), drawn_cost(static_cast<std::uint64_t>(seed)));
    Explorer explorer(graph, explored, {}, options);
    ExplorerBuffers its_buffers(explorer), buffers(explorer, device);
    double best = 1, usual = 0;
    int configurations = 0;
    each_configuration(space, [&](const Configuration& configuration) {
      const double seconds = seconds_of(graph, device, space.decisions(configuration), buffers);
      if (configurations++ == 0) usual = seconds;
      best = std::min(best, seconds);
    });
    CHECK(configurations >= 100);
    CHECK(configurations <= 500);
    run_to_end(explorer, its_buffers);
    const double tuned =
        seconds_of(graph, device, schedule::parse_decisions(explorer.tuning().text()), buffers);
    CHECK(tuned <= 1.03 * best);
    CHECK(tuned <= 1.01 * usual);
    gained += tuned < 0.99 * usual;
  }
  CHECK(gained == seeds);
}

}  // namespace fuse::test
