// One chooser decides for fusion and for the kernels. SPDX-License-Identifier: Apache-2.0
#include "schedule/choosers/chooser.hpp"

#include "compile/pipeline/pipeline.hpp"
#include "schedule/choosers/piece_cost.hpp"
#include "schedule/schedule_support.hpp"
#include "support/catch.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Chooser;
using schedule::KernelChoices;
using schedule::Piece;

namespace {

const Target device = target_profile("h200");

Compiled compiled_by(const Graph& graph, const Chooser& chooser) {
  PipelineOptions options;
  options.partition.groups.layers = 3;  // what is independent stays apart
  options.chooser = chooser;
  return run_pipeline(graph.ir(), device, options);
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
  const auto one_stage = [&](const ir::Graph& graph, const Piece& piece, const Target& of) {
    const bool one = piece.phases.size() == 1 && piece.phases[0].stages.size() == 1;
    return one ? model(graph, piece, of) : std::nullopt;
  };
  const Graph softmax = stitch::softmax(f32, 64, 300);
  CHECK(compiled_by(softmax, model).partition.pieces.size() == 1);
  CHECK(compiled_by(softmax, one_stage).partition.pieces.size() == 3);
}

TEST_CASE("a kernel runs by the choices that it was judged by", "[schedule][chooser]") {
  for (const Chooser& chooser : {schedule::cost_model(), schedule::astitch_rules(),
                                 schedule::without_grid_barriers(schedule::cost_model())}) {
    for (const Graph& graph : {stitch::softmax(f32, 64, 300), stitch::layer_norm_backward(f32, 512, 256)}) {
      const Compiled made = compiled_by(graph, chooser);
      REQUIRE(made.schedules.size() == made.partition.pieces.size());
      for (std::size_t i = 0; i < made.schedules.size(); ++i) {
        const Piece& piece = made.partition.pieces[i];
        REQUIRE(piece.chosen);
        INFO(graph.name() << " " << piece.chosen->choices.to_string());
        CHECK(piece.chosen->choices == made.schedules[i].choices);
        CHECK(piece.chosen->choices == chooser(made.graph, piece, device));
        CHECK(piece.chosen->seconds == piece_seconds(made.graph, piece, piece.chosen->choices, device));
      }
    }
  }
}

TEST_CASE("without grid barriers columns are judged as two launches", "[schedule][chooser]") {
  Graph g("columns");  // small: the second launch costs more than reading x again
  const Tensor x = g.input("x", f16, {4, 7});
  g.output("columns", argmax(convert(x, u8), 0));
  g.output("rows", argmin(convert(x, i8), 1));
  schedule::PartitionOptions options;
  const auto pieces = [&] {
    return schedule::partition(g.ir(), options, target_profile("tiny3"), analysis::facts_of(g.ir()))
        .pieces.size();
  };
  CHECK(pieces() == 1);
  options.grid_barriers = false;
  CHECK(pieces() == 2);
}

TEST_CASE("equal pieces are chosen for once", "[schedule][chooser]") {
  int asked = 0;
  const Compiled made =
      compiled_by(many_sums(9), [&](const ir::Graph& graph, const Piece& piece, const Target& of) {
        ++asked;
        return schedule::cost_model()(graph, piece, of);
      });
  CHECK(made.partition.pieces.size() == 9);
  CHECK(asked == 1);
}

TEST_CASE("a chooser without choices is named", "[schedule][chooser]") {
  const auto none = [](const ir::Graph&, const Piece&, const Target&) -> std::optional<KernelChoices> {
    return std::nullopt;
  };
  CHECK(thrown_by([&] { compiled_by(many_sums(1), none); }) ==
        "internal error: the chooser has no choices for the piece of %1");
}
