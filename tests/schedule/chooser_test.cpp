// One chooser decides for fusion and for the kernels. SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/chooser.hpp"

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/schedule_support.hpp"
#include "support/catch.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Chooser;
using schedule::KernelChoices;
using schedule::Segment;

namespace {

const Target device = target_profile("h200");

Compiled compiled_by(const Graph& graph, const Chooser& chooser) {
  PipelineOptions options;
  options.partition.groups.layers = 3;  // what is independent stays apart
  options.chooser = chooser;
  return run_pipeline(ir_of(graph), device, options);
}

/// Of the same form: `count` sums of rows.
Graph many_sums(int count) {
  Graph g("sums");
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, sum(g.input("x" + n, f32, {64, 300}), {1}));
  }
  return g;
}

}  // namespace

TEST_CASE("what a chooser cannot run in one kernel is not stitched", "[schedule][chooser]") {
  const Chooser model = schedule::cost_model();
  const auto one_stage = [&](const ir::Graph& graph, const Segment& segment, const Target& of) {
    const bool one = segment.phases.size() == 1 && segment.phases[0].stages.size() == 1;
    return one ? model(graph, segment, of) : std::nullopt;
  };
  const Graph softmax = stitch::softmax(f32, 64, 300);
  CHECK(compiled_by(softmax, model).partition.segments.size() == 1);
  CHECK(compiled_by(softmax, one_stage).partition.segments.size() == 3);
}

TEST_CASE("a kernel runs by the choices that it was judged by", "[schedule][chooser]") {
  for (const Chooser& chooser : {schedule::cost_model(), schedule::astitch_rules(),
                                 schedule::without_grid_barriers(schedule::cost_model())}) {
    for (const Graph& graph : {stitch::softmax(f32, 64, 300), stitch::layer_norm_backward(f32, 512, 256)}) {
      const Compiled made = compiled_by(graph, chooser);
      REQUIRE(made.schedules.size() == made.partition.segments.size());
      for (std::size_t i = 0; i < made.schedules.size(); ++i) {
        const Segment& segment = made.partition.segments[i];
        REQUIRE(segment.chosen);
        INFO(graph.name() << " " << segment.chosen->choices.to_string());
        CHECK(segment.chosen->choices == made.schedules[i].choices);
        CHECK(segment.chosen->choices == chooser(made.graph, segment, device));
        CHECK(segment.chosen->seconds ==
              segment_seconds(made.graph, segment, segment.chosen->choices, device));
      }
    }
  }
}

TEST_CASE("without grid barriers columns are judged as two launches", "[schedule][chooser]") {
  Graph g("columns");  // small: the second launch costs more than reading x again
  const Tensor x = g.input("x", f16, {4, 7});
  g.output("columns", argmax(convert(x, u8), 0));
  g.output("rows", argmin(convert(x, i8), 1));
  schedule::PartitionOptions options{.horizontal = false};
  const auto segments = [&] {
    return schedule::partition(ir_of(g), options, target_profile("tiny3"), analysis::facts_of(ir_of(g)))
        .segments.size();
  };
  CHECK(segments() == 1);
  options.grid_barriers = false;
  CHECK(segments() == 2);
}

TEST_CASE("rows and columns that gain apart alone are kernels of their own", "[schedule][chooser]") {
  Graph g("halves");
  const Tensor x = tanh(g.input("x", f32, {1, 8192}));
  g.output("row", sum(x, {1}));
  g.output("columns", sum(x, {0}));
  g.output("products", sum(x * x, {0}));
  const ir::Graph graph = prepared(g);
  const auto partition = schedule::partition(graph, {.horizontal = false}, device, analysis::facts_of(graph));
  REQUIRE(partition.segments.size() == 2);
  CHECK(partition.segments[0].phases[0].stages.size() == 1);
  CHECK(partition.segments[1].phases[0].stages.size() == 2);
}

TEST_CASE("blocks wait for each other where that takes less than a launch", "[schedule][chooser]") {
  Graph few_columns("few_columns"), across("across"), rows_too("rows_too"), long_rows("long_rows");
  few_columns.output("y", sum(few_columns.input("x", f32, {65536, 64}), {0}));
  across.output("y", sum(convert(across.input("x", bf16, {65536, 100}), f32), {0}));
  const Tensor x = tanh(rows_too.input("x", f32, {65536, 100}));
  rows_too.output("rows", sum(x, {1}));
  rows_too.output("columns", sum(x, {0}));
  long_rows.output("y", softmax(long_rows.input("x", f32, {4, 1 << 20})));
  for (const Graph* each : {&few_columns, &across, &rows_too, &long_rows}) {
    for (const bool waits : {true, false}) {
      Target target = device;
      target.barrier_seconds = target.launch_seconds * (waits ? 0.5 : 1);
      const ir::Graph graph = prepared(*each);
      bool have_blocks = false;
      for (const Segment& segment :
           schedule::partition(graph, {}, target, analysis::facts_of(graph)).segments) {
        const auto choices =
            segment.chosen ? segment.chosen->choices : schedule::cost_model()(graph, segment, target);
        REQUIRE(choices);
        have_blocks = have_blocks || choices->to_string().find("blocks = ") != std::string::npos;
      }
      INFO(each->name() << ", barriers " << (waits ? "cost less" : "cost as much"));
      CHECK(have_blocks == waits);
    }
  }
}

TEST_CASE("equal segments are chosen for once", "[schedule][chooser]") {
  int asked = 0;
  const Compiled made =
      compiled_by(many_sums(9), [&](const ir::Graph& graph, const Segment& segment, const Target& of) {
        ++asked;
        return schedule::cost_model()(graph, segment, of);
      });
  CHECK(made.partition.segments.size() == 9);
  CHECK(asked == 1);
}

TEST_CASE("a chooser without choices is named", "[schedule][chooser]") {
  const auto none = [](const ir::Graph&, const Segment&, const Target&) -> std::optional<KernelChoices> {
    return std::nullopt;
  };
  CHECK(thrown_by([&] { compiled_by(many_sums(1), none); }) ==
        "internal error: the chooser has no choices for the segment of %1");
}

TEST_CASE("rows whose number at the hints is beyond 63 bits have a kernel", "[schedule]") {
  Graph g("rows");
  const Dim s = g.dim("S", {.min = 1});
  g.output("y", sum(g.input("x", f32, {s, s, s, s, s, 16}), {0, 1, 2, 3, 4}));
  for (const int versions : {1, 8})
    CHECK(
        !run_pipeline(ir_of(g), target_profile("h200"), {.versions = {.most = versions}}).schedules.empty());
}
