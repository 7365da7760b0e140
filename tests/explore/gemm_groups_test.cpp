// Groups of GEMMs that are explored each by itself: what was planted as the fastest is found.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <fuse/explore.hpp>
#include <fuse/fuse.hpp>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "explore/explorer_support.hpp"
#include "runtime/device/backend.hpp"
#include "runtime/emulated/virtual_clock.hpp"
#include "runtime/explore/space.hpp"
#include "target/target.hpp"

namespace fuse::test {
namespace {

using runtime::ClockedWork;

/// The sum of tanh(x w) over weights of so many columns.
Tensor tanh_of_products(Graph& graph, const Tensor& x, const std::string& name, int count,
                        std::int64_t columns) {
  std::vector<Tensor> all;
  for (int i = 0; i < count; ++i) {
    const Tensor w = graph.parameter(name + std::to_string(i), f32, {x.dims()[1], columns});
    all.push_back(tanh(matmul(x, w)));
  }
  for (std::size_t i = 1; i < all.size(); ++i) all[0] = all[0] + all[i];
  return all[0];
}

/// How many GEMMs each way to merge the first group leaves.
std::multiset<std::int64_t> gemms_of_options(const Graph& graph, const Target& target,
                                             const runtime::Space& space) {
  const runtime::ExploredMerge& merge = space.cuts.at(1).merges.at(0);
  std::multiset<std::int64_t> gemms;
  for (std::size_t option = 0; option < merge.options.size(); ++option) {
    PipelineOptions how;
    how.decisions =
        space.decisions({{runtime::cut_name, 1}, {runtime::merge_name(merge.key), static_cast<int>(option)}});
    const Compiled stages = run_pipeline(ir_of(graph), target, how);
    CHECK(stages.unfit_decisions == 0);
    gemms.insert(std::count_if(
        stages.partition.segments.begin(), stages.partition.segments.end(),
        [](const schedule::Segment& each) { return each.kind == schedule::Segment::Kind::gemm; }));
  }
  return gemms;
}

}  // namespace

TEST_CASE("GEMMs are merged in the chunks that were planted as the fastest", "[explore][emulated]") {
  Graph graph("chunks");
  graph.output("y", tanh_of_products(graph, graph.input("x", f32, {8, 16}), "w", 12, 4));
  for (const auto& [columns, gemms] : std::vector<std::pair<std::int64_t, int>>{{4, 12}, {8, 6}, {16, 3}}) {
    INFO(gemms << " GEMMs");
    const Device device = clocked_device();
    runtime::plant_costs(*backend_of(device), [columns = columns](const ClockedWork& work) {
      if (!work.gemm) return 1e-6;
      return work.gemm->n * work.gemm->batch == columns ? 1e-6 : 60e-6;
    });
    Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_cuts = 1});
    ExplorerBuffers buffers(explorer);
    run_to_end(explorer, buffers);
    CHECK(explorer.progress().explored == explorer.progress().announced);
    CHECK(explorer.progress().dropped.empty());
    const CompileOptions tuned{.decisions = explorer.tuning().text()};
    CHECK(compile(graph, device, tuned).prepare().gemms() == gemms);
  }
}

TEST_CASE("each group of GEMMs is merged in the way that was planted for it", "[explore][emulated]") {
  Graph graph("groups");
  graph.output("y", tanh_of_products(graph, graph.input("x", f32, {8, 16}), "w", 8, 4));
  graph.output("z", tanh_of_products(graph, graph.input("v", f32, {8, 32}), "u", 8, 4));
  const Device device = clocked_device();
  // GEMMs by 16 are best in chunks of two, those by 32 in chunks of four.
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    if (!work.gemm) return 1e-6;
    const std::int64_t best = work.gemm->k == 16 ? 8 : 16;
    return work.gemm->n * work.gemm->batch == best ? 1e-6 : 60e-6;
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_cuts = 1});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().explored == explorer.progress().announced);
  CHECK(explorer.progress().dropped.empty());
  const Executable tuned = compile(graph, device, {.decisions = explorer.tuning().text()});
  CHECK(tuned.prepare().gemms() == 4 + 2);
  ExplorerBuffers own(explorer);
  Stream stream = device.stream();
  explorer.run(stream, own.views).throw_if_failed();
  stream.synchronize().throw_if_failed();
  CHECK(own.output("y") == buffers.output("y"));
}

TEST_CASE("groups that compute the same are merged alike", "[explore]") {
  Graph graph("steps");
  Tensor state = graph.input("x", f32, {8, 16});
  std::vector<Tensor> weights;
  for (int i = 0; i < 4; ++i) weights.push_back(graph.parameter("w" + std::to_string(i), f32, {16, 16}));
  for (int step = 0; step < 5; ++step) {
    Tensor sum = tanh(matmul(state, weights[0]));
    for (std::size_t i = 1; i < weights.size(); ++i) sum = sum + tanh(matmul(state, weights[i]));
    state = sum;
  }
  graph.output("y", state);
  const Target& target = target_profile("h200");
  const runtime::Space space =
      runtime::space_of(ir_of(graph), target, {}, {.bits = Bits::any, .max_cuts = 1});
  REQUIRE(space.cuts.size() == 2);
  REQUIRE(space.cuts[1].merges.size() == 1);
  CHECK(gemms_of_options(graph, target, space) == std::multiset<std::int64_t>{5, 10, 20});
}

TEST_CASE("GEMMs that run more often when they are apart disturb no run", "[explore][emulated]") {
  Graph graph("remainder");
  graph.output("y", tanh_of_products(graph, graph.input("x", f32, {8, 16}), "w", 9, 4));
  const Device device = clocked_device(0.01);
  // The ninth GEMM of chunks is launched once, and nine times where all are apart.
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    if (!work.gemm) return 1e-6;
    return work.gemm->n * work.gemm->batch == 4 ? 1e-6 : 10e-6;
  });
  Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_cuts = 1, .samples = 9});
  ExplorerBuffers buffers(explorer);
  run_to_end(explorer, buffers);
  CHECK(explorer.progress().stopped.empty());
  CHECK(compile(graph, device, {.decisions = explorer.tuning().text()}).prepare().gemms() == 9);
}

TEST_CASE("an exploration that begins with a tuning may cut and merge in other ways", "[explore][emulated]") {
  Graph graph("continued");
  graph.output("y", tanh_of_products(graph, graph.input("x", f32, {8, 16}), "w", 8, 4));
  const Device device = clocked_device();
  runtime::plant_costs(*backend_of(device), [](const ClockedWork& work) {
    if (!work.gemm) return 1e-6;
    return work.gemm->n * work.gemm->batch == 8 ? 1e-6 : 60e-6;
  });
  CompileOptions begins_with;
  for (const int groups : {0, 1}) {
    INFO("groups " << groups);
    Explorer explorer(graph, device, {}, {.bits = Bits::any, .max_cuts = 1, .max_groups = groups},
                      begins_with);
    ExplorerBuffers buffers(explorer);
    run_to_end(explorer, buffers);
    CHECK(explorer.progress().dropped.empty());
    begins_with.decisions = explorer.tuning().text();
    CHECK(compile(graph, device, begins_with).prepare().gemms() == (groups == 0 ? 1 : 4));
  }
  const runtime::Space space = runtime::space_of(ir_of(graph), backend_of(device)->target(), begins_with,
                                                 {.bits = Bits::any, .max_cuts = 100});
  std::set<std::string> names;
  for (const runtime::CutContext& cut : space.cuts) names.insert(cut.name);
  CHECK(names.contains("merge: none"));
  CHECK(names.contains("merge: all"));
  CHECK(names.contains("merge: each group"));
  CHECK(space.cuts.back().merges.at(0).options.size() == 4);  // as it is, apart, merged, chunks of 4
  REQUIRE(space.cuts.size() >= 4);
  runtime::Space fewer = space;
  fewer.keep({.cuts = 2, .groups = 1, .options = 8});
  CHECK(fewer.cuts.size() == 3);
  CHECK(fewer.cuts.back().by_group);
  fewer.keep({.options = 8});
  CHECK(fewer.cuts.size() == 1);
}

TEST_CASE("groups of one key that the cost treats differently are all merged as the option says",
          "[explore]") {
  Graph graph("mixed");
  const Tensor x = graph.input("x", f32, {4, 1024}), z = graph.input("z", f32, {4, 1024});
  std::vector<Tensor> products;
  for (int i = 0; i < 6; ++i) {
    const Tensor w = graph.parameter("w" + std::to_string(i), f32, {1024, 256});
    products.push_back(matmul(i < 3 ? x : z, w));
  }
  // A group of outputs stays apart by default: merged, its parts would have to be copied.
  for (int i = 0; i < 3; ++i) graph.output("g" + std::to_string(i), products[static_cast<std::size_t>(i)]);
  graph.output("y", products[3] + products[4] + products[5]);
  const Target& target = target_profile("h200");
  const runtime::Space space =
      runtime::space_of(ir_of(graph), target, {}, {.bits = Bits::any, .max_cuts = 1});
  REQUIRE(space.cuts.size() == 2);
  REQUIRE(space.cuts[1].merges.size() == 1);
  CHECK(gemms_of_options(graph, target, space) ==
        std::multiset<std::int64_t>{2, 4, 4, 6});  // merged, as by default, chunks of 2, apart
}

}  // namespace fuse::test
