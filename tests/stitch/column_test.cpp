// Rows and columns in one kernel: blocks keep columns while they walk rows, and combine them behind a grid
// barrier. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstddef>

#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_graphs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Stage;

namespace {

/// One pass reduces the row, the next takes its total; two columns, of them one a pair.
Graph rows_and_columns(std::int64_t rows, std::int64_t columns) {
  Graph g("rows_and_columns");
  const Tensor x = g.input("x", f32, {rows, columns});
  const Tensor y = x / sum(x, {1}, {.keep_dims = true});
  g.output("y", y);
  g.output("sum", convert(sum(y, {0}), bf16));
  g.output("position", argmax(y, 0));
  return g;
}

std::vector<std::string> forms(const schedule::Phase& phase) {
  std::vector<std::string> result;
  for (const Stage& stage : phase.stages) result.emplace_back(schedule::to_string(stage.form));
  std::sort(result.begin(), result.end());
  return result;
}

}  // namespace

TEST_CASE("columns are stages beside rows", "[stitch][schedule]") {
  const Compiled whole = compiled(rows_and_columns(1000, 300), "h200");
  REQUIRE(whole.schedules.size() == 1);
  const schedule::Schedule& made = whole.schedules[0];
  CHECK(forms(made.phases[0].computes) ==
        std::vector<std::string>{"column", "column_reduce", "column_reduce", "element", "reduce"});
  CHECK(rows_at_once(made.phases[0].choices) == 1);
  const Dim parts = 300 * made.phases[0].choices.blocks_per_row();
  CHECK(made.scratch == std::vector<schedule::ScratchArray>{{f32, parts}, {f32, parts}, {i64, parts}});
  REQUIRE(made.kernels.size() == 3);
  CHECK(made.kernels[1].results.is(300));
  CHECK(made.kernels[1].reduced.is(made.phases[0].choices.blocks_per_row()));
  // Square: what is made of a column is not taken for what is made of a row.
  const Compiled square = compiled(rows_and_columns(64, 64), "h200");
  CHECK(forms(square.schedules[0].phases[0].computes) == forms(made.phases[0].computes));
  CHECK(rows_at_once(square.schedules[0].phases[0].choices) > 1);
}

TEST_CASE("one step spins and has parts; without grid barriers they are steps", "[stitch][pipeline]") {
  const Compiled whole = compiled(rows_and_columns(1000, 300), "h200");
  REQUIRE(whole.plan.steps.size() == 2);
  CHECK(whole.plan.steps[0].name == "zero.barriers");
  const schedule::Step& step = whole.plan.steps[1];
  CHECK(step.cooperative);
  const auto& work = std::get<schedule::KernelStep>(step.work);
  CHECK(work.fallback.size() == 2);
  CHECK(work.counter.has_value());
  const codegen::KernelInfo& info = whole.source.kernels[work.kernel];
  CHECK(info.cooperative);
  CHECK(info.blocks_per_sm * 132 >= whole.schedules[0].phases[0].choices.blocks);

  const Compiled apart = compiled(rows_and_columns(1000, 300), "h200", {.grid_barriers = false});
  REQUIRE(apart.plan.steps.size() == 2);
  for (const schedule::Step& each : apart.plan.steps) CHECK(!each.cooperative);
  CHECK(apart.source.kernels.size() == 2);
}

TEST_CASE("one kernel or two launches, the same bits", "[stitch][emulated]") {
  for (const char* profile : {"tiny2", "tiny3", "h200"}) {
    const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 0});
    for (const std::int64_t columns : {40, 300}) {
      INFO(profile << ' ' << columns);
      const Graph g =
          rows_and_columns(1000, columns);  // so many rows are one kernel with or without barriers
      for (const bool barriers : {true, false}) {
        const Compiled made = compiled(g, profile, {.grid_barriers = barriers});
        REQUIRE(made.partition.segments.size() == 1);
        REQUIRE(has_columns(made.partition.segments[0].phases[0]));
      }
      CHECK(output_bytes(g, device, {}) == output_bytes(g, device, {.grid_barriers = false}));
    }
  }
}

TEST_CASE("columns of no rows are what nothing is reduced to", "[stitch][emulated]") {
  Graph g("none");
  const Tensor x = g.input("x", f32, {0, 40});
  g.output("rows", sum(x, {1}));
  g.output("columns", sum(x, {0}));
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0});
  const std::vector<std::byte> sums = output_bytes(g, device, {}).at("columns");
  CHECK(sums == std::vector<std::byte>(40 * sizeof(float)));
}

TEST_CASE("columns that no thread can keep are no stages", "[stitch][schedule]") {
  const auto segments = [](std::int64_t columns) {
    Graph g("wide");
    const Tensor x = g.input("x", f32, {1 << 14, columns});
    g.output("columns", sum(x / sum(x, {1}, {.keep_dims = true}), {0}));
    return compiled(g, "h200").partition.segments.size();
  };
  CHECK(segments(16 * 1024) == 1);
  CHECK(segments(16 * 1024 + 1) == 2);

  const Compiled whole = compiled(rows_and_columns(1000, 300), "h200");
  const auto verified = [&](schedule::Choices choices) {
    const Target target = target_profile("h200");
    return thrown_by([&] {
      verify(whole.graph, make_schedule(whole.graph, whole.schedules[0].segment, {{choices}}, target),
             target);
    });
  };
  CHECK(verified({.splits = schedule::in_turns(schedule::nest_of_blocks(64), 3)}) == "no error");
  CHECK(verified({.splits = schedule::in_turns(schedule::nest_of_blocks(32), 3)}) ==
        "no error");  // 10 elements of 4 words each
  CHECK(verified({.splits = schedule::in_turns(schedule::nest_of_lanes(32), 3), .blocks = 3 * 132 + 1}) ==
        "no error");
  CHECK(verified({.splits = schedule::in_turns(schedule::nest_of_lanes(32), 3), .blocks = 3}) == "no error");
  CHECK(verified({.splits = schedule::in_turns(schedule::nest_of_columns(64), 3)})
            .find("columns that no thread can keep") != std::string::npos);
}

TEST_CASE("rows and columns stay apart where that is faster, with the numbers", "[stitch][partition]") {
  // Few rows: a block each would leave the device idle, which columns side by side do not.
  Graph g("few_rows");
  const Tensor x = g.input("x", f32, {4, 8192});
  g.output("rows", sum(x, {1}));
  g.output("columns", sum(x, {0}));
  const Compiled few = compiled(g, "h200");
  INFO(print(few.graph, few.partition));
  CHECK(few.partition.refusals.size() == few.partition.segments.size() - 1);
}

TEST_CASE("without any one of its barriers a kernel of rows and columns faults", "[stitch][emulated]") {
  for (const std::int64_t columns : {40, 300}) {
    for (const bool joined : {true, false}) {
      INFO(columns << " columns");
      CHECK(check_barriers(rows_and_columns(37, columns), "tiny3", {.grid_barriers = joined}) >= 3);
    }
  }
}
