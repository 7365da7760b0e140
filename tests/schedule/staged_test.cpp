// Reductions over columns that blocks which share the rows make. SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/staged.hpp"

#include <algorithm>

#include "schedule/choosers/chooser.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;
using schedule::Stage;

TEST_CASE("reductions across the rows are columns, and their loops those of the rows", "[schedule]") {
  const OneSegment one(sum_graph({3000, 40, 6}, {0}));
  const std::optional<schedule::Phase> rows = across_rows(one.graph, one.phase());
  REQUIRE(rows);
  CHECK(rows->stages.at(0).form == Stage::Form::outer_reduce);
  CHECK(dominant(*rows) == dominant(one.phase()));
  const schedule::LoopShape shape = loop_shape(one.graph, *rows);
  CHECK(product(shape.kept).is(3000));
  CHECK(product(shape.reduced).is(240));
  CHECK(shape.inner);
  CHECK(shape.is_reduced == std::vector<bool>{false, true, true});
  CHECK_FALSE(across_rows(one.graph, *rows));
  CHECK_FALSE(loop_shape(one.graph, one.phase()).inner);
}

TEST_CASE("rows that are reduced themselves, and elements made of columns, are not walked across",
          "[schedule]") {
  const OneSegment rows(sum_graph({3000, 40}, {1}));
  CHECK_FALSE(across_rows(rows.graph, rows.phase()));
  Graph g("centred");
  const Tensor x = g.input("x", f32, {3000, 40});
  g.output("y", x - sum(x, {0}));
  const ir::Graph graph = prepared(g);
  for (const schedule::Segment& segment : schedule::partition(graph).segments) {
    for (const schedule::Phase& phase : segment.phases) {
      const bool elements = std::any_of(phase.stages.begin(), phase.stages.end(), [](const Stage& stage) {
        return stage.form == Stage::Form::element;
      });
      CHECK((elements && across_rows(graph, phase)) == false);
    }
  }
}

TEST_CASE("threads take columns side by side, and blocks share the rows of few columns", "[schedule]") {
  const Choices few = OneSegment(sum_graph({65536, 1024}, {0})).defaults("h200");
  CHECK(few.to_string() == "nest = r:grid c:serial c:grid8 c:warp8 c:lane4 r:lane8 r:vector4, blocks = 256");
  const Choices many = OneSegment(sum_graph({4096, 65536}, {0})).defaults("h200");
  CHECK(many.to_string() == "nest = r:grid c:serial c:warp8 c:lane4 r:lane8 r:vector4");
  // Of few rows, the warps of a block have columns of their own.
  const Choices short_ones = OneSegment(sum_graph({3, 1 << 20}, {0})).defaults("h200");
  CHECK(short_ones.to_string() == "nest = r:grid r:warp8 c:serial c:lane4 r:lane8 r:vector4");
  // Fewer than a line has: lanes side by side are rows.
  const Choices fewest = OneSegment(sum_graph({65536, 8}, {0})).defaults("h200");
  CHECK(fewest.to_string() ==
        "nest = r:grid c:serial c:grid128 c:warp8 c:lane16 r:lane2 r:vector4, blocks = 128");
  // A baseline compiler has no kernel whose blocks share a row.
  const OneSegment one(sum_graph({65536, 1024}, {0}));
  const schedule::Chooser alone = schedule::without_splits(schedule::cost_model());
  CHECK(alone(one.graph, one.segment, target_profile("h200"))->to_string() ==
        "nest = r:grid c:serial c:warp8 c:lane4 r:lane8 r:vector4");
}

TEST_CASE("columns that do not lie side by side are shared by blocks, or walked down", "[schedule]") {
  const Choices few = OneSegment(sum_graph({65536, 1023}, {0})).defaults("h200");
  CHECK(few.across);
  CHECK(rows_at_once(few) > 1);
  CHECK(few.blocks_per_row() == 2 * target_profile("h200").sms);
  const Choices many = OneSegment(sum_graph({4096, 65537}, {0})).defaults("h200");
  CHECK_FALSE(many.across);
  CHECK(many.splits == schedule::nest_of_columns(256));
}

TEST_CASE("blocks across rows that nothing is reduced across are refused", "[schedule]") {
  const OneSegment one(sum_graph({64, 1024}, {1}));
  Choices choices = one.defaults("h200");
  choices.across = true;
  CHECK(thrown_by([&] { one.make(choices); }).find("across is for reductions over an outer dim") !=
        std::string::npos);
}
