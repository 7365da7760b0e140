// Halo tiles: element-wise phases that read windows of each other, in one kernel whose blocks compute the
// margins of their tiles again (docs/regional.md). SPDX-License-Identifier: Apache-2.0
#include "schedule/regional/halo_tiles.hpp"

#include <algorithm>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "fuzz/judge/execute.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/nest/choices_text.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/segment.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;            // NOLINT
using namespace fuse::schedule;  // NOLINT
using namespace fuse::test;      // NOLINT

namespace {

/// The average of four neighbours, and 0 outside.
Tensor blurred(const Tensor& x) {
  const Tensor padded = pad(x, 0.0, {1, 1}, {1, 1});
  const auto part = [&](std::int64_t row, std::int64_t column) {
    return slice(slice(padded, 0, row, x.dim(0) + row), 1, column, x.dim(1) + column);
  };
  return (part(0, 1) + part(1, 0) + part(1, 2) + part(2, 1)) * 0.25;
}

/// What a filter of four taps makes of x along dim 1, looking back.
Tensor filtered(const Tensor& x) {
  const Tensor padded = pad(x, 0.0, {0, 3, 0}, {0, 0, 0});
  Tensor sum = slice(padded, 1, 0, x.dim(1)) * 0.1;
  for (std::int64_t tap = 1; tap < 4; ++tap)
    sum = sum + slice(padded, 1, tap, x.dim(1) + tap) * (0.1 * static_cast<double>(tap + 1));
  return sum;
}

Graph blur(const Dim& rows, const Dim& columns, int passes = 4) {
  Graph g("blur");
  Tensor x = g.input("x", f32, {rows, columns});
  for (int i = 0; i < passes; ++i) x = blurred(x);
  g.output("y", x);
  return g;
}

Graph filter(const Dim& batch, const Dim& length, const Dim& channels, int layers = 4) {
  Graph g("filter");
  Tensor x = g.input("x", f32, {batch, length, channels});
  for (int i = 0; i < layers; ++i) x = filtered(x);
  g.output("y", x);
  return g;
}

/// Costly ops between windows.
Graph costly(const Dim& length) {
  Graph g("costly");
  Tensor x = g.input("x", f32, {8, length, 64});
  for (int i = 0; i < 4; ++i) x = filtered(erf(x));
  g.output("y", x);
  return g;
}

/// Windows without padding, of a value that several phases read, and one phase with two results.
Graph shrinking() {
  Graph g("shrinking");
  const Tensor x = g.input("x", f32, {500});
  Tensor all = tanh(x);
  for (int pass = 0; pass < 3; ++pass) {
    Tensor sum = slice(all, 0, 0, all.dim(0) - 7);
    for (std::int64_t tap = 1; tap < 8; ++tap) sum = sum + slice(all, 0, tap, all.dim(0) - 7 + tap);
    all = tanh(sum);
  }
  g.output("y", all + slice(x, 0, 3, 482));
  g.output("z", exp(all));
  return g;
}

bool is_tiled(const Compiled& made) {
  return made.schedules.size() == 1 && !made.schedules[0].choices.tile.empty();
}

/// How a run in checked mode was judged, with this tile and so many threads wherever a kernel can have them.
std::string outcome_with(const Graph& graph, const char* profile, const std::vector<int>& tile, int threads,
                         std::uint64_t seed) {
  const fuzz::RunOptions options{
      .profile = profile, .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0};
  int tiled = 0;
  fuzz::Batch batch({case_of(graph, options)}, {},
                    [&](const ir::Graph& g, const Segment& segment, const Target& target) {
                      KernelChoices choices = model_choices(g, segment, target).value();
                      if (choices.tile.empty()) return choices;
                      choices.tile = tile;
                      for (Choices& phase : choices.phases) phase.splits = nest_of_elements(threads);
                      tiled += misfit(g, segment, choices, target).empty();
                      return choices;
                    });
  const fuzz::Outcome result = batch.run(0);
  UNSCOPED_INFO(result.text);
  return tiled == 0 ? "no tile" : std::string(to_string(result.verdict));
}

const std::string right(to_string(fuzz::Verdict::ok));

}  // namespace

TEST_CASE("element-wise phases that read windows of each other are one kernel", "[stitch][schedule]") {
  for (const char* profile : {"h200", "a100", "v100"}) {
    for (const Graph& g : {blur(64, 64), blur(2000, 1000), filter(2, 256, 64), shrinking()}) {
      INFO(g.name() << " on " << profile);
      const Compiled made = compiled(g, profile);
      REQUIRE(is_tiled(made));
      CHECK(made.plan.steps.size() == 1);
      CHECK(made.schedules[0].segment.results.size() == ir_of(g).outputs.size());
      CHECK(compiled(g, profile, {.experiments = experiments({.layers = 2})}).plan.steps.size() > 1);
    }
  }
}

TEST_CASE("a kernel of halo tiles is right for any tile and number of threads, in any order",
          "[stitch][emulated]") {
  for (const std::vector<int>& tile : {std::vector{1, 1}, {7, 5}, {4, 32}, {64, 20}, {3, 70}}) {
    for (const int threads : {32, 256}) {
      INFO("tile " << tile[0] << " x " << tile[1] << ", " << threads << " threads");
      CHECK(outcome_with(blur(37, 41), "h200", tile, threads, 1) == right);
    }
  }
  CHECK(outcome_with(filter(3, 50, 6), "a100", {1, 16, 6}, 64, 2) == right);
  CHECK(outcome_with(filter(3, 50, 6), "a100", {2, 7, 4}, 64, 3) == right);
  for (const int tile : {1, 100, 479, 500}) CHECK(outcome_with(shrinking(), "h200", {tile}, 128, 4) == right);
}

TEST_CASE("halo tiles compute at most a tenth more costly ops, and else no tiles are made", "[schedule]") {
  const Compiled made = compiled(costly(4096), "h200");
  int tiled = 0;
  for (const Schedule& schedule : made.schedules) {
    const std::vector<int>& tile = schedule.choices.tile;
    if (tile.empty()) continue;
    ++tiled;
    const HaloTiles tiles = halo_tiles(made.graph, schedule.segment.phases, schedule.segment.results).value();
    double computed = 0, needed = 0;
    for (std::size_t i = 0; i < tiles.phases.size(); ++i) {
      const auto is_costly = [&](ir::NodeId id) { return info(made.graph[id].op).has(ir::Trait::costly); };
      const std::vector<ir::NodeId>& nodes = schedule.segment.phases[i].nodes;
      const auto ops = static_cast<double>(std::count_if(nodes.begin(), nodes.end(), is_costly));
      const std::vector<std::int64_t> extents = extents_of(tiles.phases[i], tile);
      computed += ops * static_cast<double>(extents[0] * extents[1] * extents[2]);
      needed += ops * static_cast<double>(tile[0]) * tile[1] * tile[2];
    }
    CHECK(computed <= 1.1 * needed);
  }
  CHECK(tiled == 1);
  for (const Schedule& schedule : compiled(costly(16), "h200").schedules)
    CHECK(schedule.choices.tile.empty());
}

TEST_CASE("without its barriers a kernel of halo tiles faults", "[stitch][emulated]") {
  CHECK(check_barriers(blur(64, 64), "h200", {}) >= 3);
}

TEST_CASE("a kernel of halo tiles with symbolic dims is right for any of them", "[stitch][emulated]") {
  Graph g("symbolic");
  const Dim rows = g.dim("H", {.min = 0, .max = 300, .hint = 64}),
            columns = g.dim("W", {.min = 1, .max = 300, .hint = 64});
  Tensor x = g.input("x", f32, {rows, columns});
  for (int i = 0; i < 4; ++i) x = blurred(x);
  g.output("y", x);
  REQUIRE(is_tiled(compiled(g, "h200")));
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable executable = compile(g, device);
  for (const auto& [h, w] : {std::pair{5, 7}, {64, 64}, {1, 1}, {0, 9}, {33, 130}}) {
    INFO(h << " x " << w);
    fuzz::Case program = case_of(g, {.checked = true, .optimization = 0});
    program.program.bindings = {{{"H", h}, {"W", w}}};
    fuzz::Batch batch({std::move(program)}, {});
    const fuzz::Outcome result = batch.run(0);
    INFO(result.text);
    const bool empty = result.verdict == fuzz::Verdict::wasted && h == 0;  // nothing to compare
    CHECK((empty || std::string(to_string(result.verdict)) == right));
  }
}

TEST_CASE("windows are what is needed of each phase around a tile", "[schedule]") {
  const auto windows = [](const Graph& g) -> std::vector<Windows> {
    const Compiled made = compiled(g, "h200", {.experiments = experiments({.layers = 2})});
    std::vector<Phase> phases;
    std::vector<ir::NodeId> results;
    for (const Segment& segment : made.partition.segments) phases.push_back(segment.phases.at(0));
    results = phases.back().results;
    const std::optional<HaloTiles> tiles = halo_tiles(made.graph, phases, results);
    return tiles ? tiles->phases : std::vector<Windows>();
  };
  // Of a padded value, which is the stored one, position 0 is one before that of what was padded.
  CHECK(windows(blur(64, 64, 3)) ==
        std::vector<Windows>{{{-1, 3}, {-1, 3}}, {{0, 2}, {0, 2}}, {{0, 0}, {0, 0}}});
  const std::vector<Windows> back = windows(filter(2, 256, 64, 3));
  REQUIRE(back.size() == 3);
  CHECK(back[0] == Windows{{0, 0}, {-3, 3}, {0, 0}});
  CHECK(back[1] == Windows{{0, 0}, {0, 3}, {0, 0}});

  const auto between = [&](const auto& read) {
    Graph g("between");
    const Tensor x = g.input("x", f32, {64, 64});
    Tensor y = blurred(blurred(blurred(x)));
    g.output("y", blurred(read(y)));
    return windows(g).size();
  };
  CHECK(between([](const Tensor& y) { return exp(y); }) > 1);
  CHECK(between([](const Tensor& y) { return concat({slice(y, 0, 0, 32), slice(y, 0, 32, 64)}, 0); }) > 1);
  CHECK(between([](const Tensor& y) { return reverse(y, {0}); }) == 0);
  CHECK(between([](const Tensor& y) { return transpose(y, {1, 0}); }) == 0);
  CHECK(between([](const Tensor& y) { return y - sum(y, {1}, {.keep_dims = true}); }) == 0);
}

TEST_CASE("a tile that its kernel cannot have is refused by name", "[schedule]") {
  const Compiled made = compiled(blur(64, 64), "h200");
  REQUIRE(is_tiled(made));
  const auto says = [&](const auto& change, const char* what) {
    const std::string text = misfit_after(made, change);
    INFO(text);
    return text.find(what) != std::string::npos;
  };
  CHECK(misfit_after(made, [](KernelChoices&) {}).empty());
  CHECK(says([](KernelChoices& c) { c.tile = {64}; }, "a tile of 1 dims, and the last phase has 2"));
  CHECK(says([](KernelChoices& c) { c.tile = {}; }, "no slices, and no tile"));
  CHECK(says([](KernelChoices& c) { c.slices = 1; }, "of slices and of a tile"));
  CHECK(says([](KernelChoices& c) { c.blocks = 4; }, "wait for each other"));
  CHECK(says([](KernelChoices& c) { c.tile = {1 << 11, 1 << 11}; }, "more than 1048576 elements"));
  CHECK(says([](KernelChoices& c) { c.tile = {256, 256}; }, "bytes of shared memory"));
  CHECK(says([](KernelChoices& c) { c.phases[1].splits = in_turns(c.phases[1].splits, 4); }, "needs r:grid"));
  const Compiled apart = compiled(blur(64, 64), "h200", {.experiments = experiments({.layers = 2})});
  KernelChoices tiled = apart.schedules.at(0).choices;
  tiled.tile = {8, 8};
  CHECK_FALSE(
      schedule::misfit(apart.graph, apart.partition.segments.at(0), tiled, target_profile("h200")).empty());
}

TEST_CASE("choices with a tile are printed and read back", "[schedule]") {
  const KernelChoices choices = compiled(blur(64, 64), "h200").schedules.at(0).choices;
  CHECK(parse_choices(choices.to_string(), "test") == choices);
  const auto error = [](const std::string& tile) {
    try {
      parse_choices("tile = " + tile + ", phase {nest = r:grid r:lane32}, phase {nest = r:grid r:lane32}",
                    "here");
    } catch (const Error& e) {
      return e.info().message;
    }
    return std::string();
  };
  CHECK(error("4 x 32").empty());
  CHECK(error("4 x").find("an extent of a tile is ''") != std::string::npos);
  CHECK(error("0").find("an extent of a tile is '0'") != std::string::npos);
  CHECK(error("4 x -1").find("an extent of a tile is '-1'") != std::string::npos);
}
