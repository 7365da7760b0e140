// Every nest that a CPU's kernels may have can be written as C++ for the cpu device: what it cannot run is no
// legal choice. SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/mapping/schedule.hpp"
#include "support/catch.hpp"
#include "target/target.hpp"

using namespace fuse;  // NOLINT

namespace {

using schedule::Choices;
using schedule::KernelChoices;

/// The number of legal nests of a graph's only kernel; each of them is made into text.
int print_all(const Graph& graph) {
  const Target target = target_profile("x86-64-v3");
  const Compiled usual = run_pipeline(ir_of(graph), target);
  REQUIRE(usual.partition.segments.size() == 1);
  const schedule::Segment& segment = usual.partition.segments[0];
  int count = 0;
  const schedule::NestNumbers numbers{.blocks_per_row = {1, 4},
                                      .turns = {0, 3},
                                      .shared_cache = {64},
                                      .accumulators = {2},
                                      .row_to_row = true};
  schedule::each_legal_nest(usual.graph, segment.phases[0], target, numbers, [&](const Choices& choices) {
    PipelineOptions options;
    options.choose = [&](const ir::Graph&, const schedule::Segment&, const Target&) {
      return std::optional(KernelChoices{.phases = {choices}});
    };
    INFO(choices.to_string());
    CHECK_NOTHROW(run_pipeline(ir_of(graph), target, options));
    ++count;
  });
  return count;
}

}  // namespace

TEST_CASE("cpu: all legal nests of sums, norms, scans, transposes and element-wise kernels have a text",
          "[cpu]") {
  Graph rows("rows");
  rows.output("y", softmax(convert(rows.input("x", f16, {37, 128}), f32)));
  CHECK(print_all(rows) > 20);
  Graph columns("columns");
  columns.output("y", sum(columns.input("x", f32, {64, 96}), {0}));
  CHECK(print_all(columns) > 10);
  Graph scans("scans");
  scans.output("y", cumulative_sum(scans.input("x", f32, {8, 100}), 1));
  CHECK(print_all(scans) > 1);
  Graph turned("turned");
  turned.output("y", transpose(turned.input("x", f32, {40, 70}), {1, 0}) * 2);
  CHECK(print_all(turned) > 1);
  Graph elements("elements");
  elements.output("y", exp(elements.input("x", bf16, {1000})));
  CHECK(print_all(elements) > 1);
}

TEST_CASE("cpu: packed registers and blocks that wait are refused, with the reason", "[cpu]") {
  Graph graph("rows");
  graph.output("y", softmax(graph.input("x", f32, {37, 128})));
  const Target target = target_profile("x86-64-v3");
  const Compiled usual = run_pipeline(ir_of(graph), target);
  const schedule::Segment& segment = usual.partition.segments[0];
  KernelChoices choices = segment.chosen.value().choices;
  CHECK(schedule::misfit(usual.graph, segment, choices, target).empty());
  KernelChoices packed = choices, waiting = choices;
  packed.phases[0].packed = true;
  waiting.phases[0].blocks = 4;
  CHECK_THAT(schedule::misfit(usual.graph, segment, packed, target), Catch::Contains("packed"));
  CHECK_THAT(schedule::misfit(usual.graph, segment, waiting, target), Catch::Contains("wait"));
}
