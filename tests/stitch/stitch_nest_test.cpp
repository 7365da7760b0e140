// Kernels by loops that no usual nest has: they answer right whatever the threads' order, and blocks that
// share rows combine them in one order however they meet. SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "fuzz/grow/random.hpp"
#include "fuzz/nest_campaign.hpp"
#include "schedule/mapping/legal_nests.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/rows_of_any_length.hpp"
#include "support/nest_segments.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

Choices loops(std::string_view splits, int blocks = 0) {
  return {.splits = schedule::parse_splits(splits).value(), .blocks = blocks};
}

std::string replaced(std::string text, std::string_view from, std::string_view to) {
  const std::size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

/// What the kernel answers; it has been judged right.
runtime::Values answers(const Graph& g, const Choices& choices) {
  const fuzz::RunOptions options{.checked = true, .threads = 2, .shuffle_seed = 5, .optimization = 0};
  fuzz::Batch batch({case_of(g, options)}, {},
                    [&](const ir::Graph&, const schedule::Segment&, const Target&) {
                      return schedule::KernelChoices{{choices}};
                    });
  runtime::Values values;
  const fuzz::Outcome outcome =
      batch.run(0, [&](const fuzz::Observed& observed) { values = observed.results; });
  INFO(ir_of(g).name << " {" << choices.to_string() << "}: " << outcome.text);
  CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  return values;
}

}  // namespace

TEST_CASE("nests: launches, one kernel and a cluster of the same splits give the same bits",
          "[stitch][emulated]") {
  for (const NestPhase& phase : nest_segments(13, 200)) {
    if (phase.name != "softmax" && phase.name != "layer_norm" && phase.name != "row_sum") continue;
    for (const char* splits :
         {"r:grid c:serial c:grid3 c:warp2 c:lane32", "r:grid r:warp2 c:serial c:grid3 c:lane32 c:vector2",
          "r:grid r:warp2 c:serial c:grid3 c:warp2 r:lane4 c:lane8",
          "r:grid c:serial c:grid3 c:warp3 c:lane4 r:lane8", "r:grid r:warp3 c:serial c:grid3 r:lane32"}) {
      const runtime::Values launches = answers(phase.graph, loops(splits));
      const runtime::Values waiting = answers(phase.graph, loops(splits, 7));
      const runtime::Values cluster = answers(phase.graph, loops(replaced(splits, "c:grid3", "c:cluster3")));
      for (const auto& [name, tensor] : launches) {
        INFO(phase.name << " {" << splits << "} " << name);
        CHECK(tensor.data == waiting.at(name).data);
        CHECK(tensor.data == cluster.at(name).data);
      }
    }
  }
}

TEST_CASE("nests: columns that many threads keep have the same bits by launches and by one kernel",
          "[stitch][emulated]") {
  for (const NestPhase& phase : nest_segments(600, 72)) {
    if (phase.name != "layer_norm_backward") continue;
    for (const char* splits :
         {"r:serial r:grid40 c:serial c:warp11 c:lane32", "r:serial r:grid70 r:warp9 c:serial c:lane32"}) {
      const runtime::Values launches = answers(phase.graph, loops(splits));
      const runtime::Values waiting = answers(phase.graph, loops(splits, 30));
      for (const auto& [name, tensor] : launches) {
        INFO(splits << ' ' << name);
        CHECK(tensor.data == waiting.at(name).data);
      }
    }
  }
}

TEST_CASE("nests: what blocks pass on by a barrier has the same bits by launches and in a cluster",
          "[stitch][emulated]") {
  constexpr std::uint64_t seed = 20261130;
  const Target target = target_profile("h200");
  struct Way {
    const NestPhase* phase;
    ir::Graph graph;
    schedule::Segment segment;
    Choices choices;
  };
  std::vector<Way> ways;
  const std::vector<NestPhase> phases = nest_segments();
  for (const NestPhase& phase : phases) {
    if (!phase.reduces) continue;
    const Compiled made = run_pipeline(ir_of(phase.graph), target, {});
    schedule::each_legal_nest(made.graph, made.partition.segments.at(0).phases.at(0), target,
                              fuzz::odd_numbers(), [&](const Choices& choices) {
                                if (choices.blocks > 0)
                                  ways.push_back({&phase, made.graph, made.partition.segments[0], choices});
                              });
  }
  fuzz::Random random(seed);
  for (int i = 0; i < 8; ++i) {
    const Way& way = ways[random.below(ways.size())];
    const runtime::Values waiting = answers(way.phase->graph, way.choices);
    std::vector<Choices> others(2, way.choices);
    others[0].blocks = others[1].blocks = 0;
    for (schedule::Split& split : others[1].splits) {
      if (split.dim == 'c' && split.level == schedule::Level::grid) split.level = schedule::Level::cluster;
    }
    for (const Choices& other : others) {
      if (!misfit(way.graph, way.segment, {{other}}, target).empty()) continue;
      for (const auto& [name, tensor] : answers(way.phase->graph, other)) {
        INFO("seed " << seed << ": " << way.phase->name << " {" << way.choices.to_string() << "} and {"
                     << other.to_string() << "} " << name);
        CHECK(tensor.data == waiting.at(name).data);
      }
    }
  }
}

TEST_CASE("nests: some of the enumeration and of random lists, in three orders of threads",
          "[stitch][emulated]") {
  const fuzz::NestTotals totals =
      fuzz::run_nests({.seed = 20261126, .count = 48, .lists = 300}, [](const auto&) {});
  INFO("seed 20261126");
  for (const std::string& failure : totals.failures) FAIL_CHECK(failure);
  CHECK(totals.nests == 48);
  CHECK(totals.taken > 20);
  CHECK(totals.runs == totals.wanted);
}

TEST_CASE("nests: neighbouring columns of a thread, with ops before and behind their sums",
          "[stitch][emulated]") {
  Graph g("columns");
  const Tensor x = g.input("x", f16, {37, 72}), whole = convert(x, f32);
  const Tensor largest = max(-whole, {0}), total = sum(whole, {0});
  g.output("largest", -largest);
  g.output("mean", convert(total * 0.25f + largest, f16));
  g.output("position", argmax(whole, 0));
  for (const char* splits :
       {"r:grid c:serial c:warp3 r:lane32 r:vector2", "r:grid c:serial c:lane32 r:vector4",
        "r:serial r:grid2 r:warp2 c:serial r:lane4 c:lane8 r:vector2",
        "r:grid c:serial c:grid3 c:warp2 r:lane32 r:vector2"}) {
    const runtime::Values alone = answers(g, loops(splits));
    if (std::string(splits).find("c:grid3") == std::string::npos) continue;
    const runtime::Values waiting = answers(g, loops(splits, 6));
    const runtime::Values cluster = answers(g, loops(replaced(splits, "c:grid3", "c:cluster3")));
    for (const auto& [name, tensor] : alone) {
      INFO(name);
      CHECK(tensor.data == waiting.at(name).data);
      CHECK(tensor.data == cluster.at(name).data);
    }
  }
}

TEST_CASE("nests: a thread of neighbouring columns loads them at once", "[stitch]") {
  const std::vector<NestPhase> phases = nest_segments(37, 72);
  for (const NestPhase& phase : phases) {
    if (phase.name != "column_sum") continue;
    PipelineOptions options;
    options.choose = [](const ir::Graph&, const schedule::Segment&, const Target&) {
      return schedule::KernelChoices{{loops("r:grid c:serial c:warp4 r:lane32 r:vector4")}};
    };
    const Compiled made = run_pipeline(ir_of(phase.graph), target_profile("h200"), options);
    REQUIRE(made.kernels.size() == 1);
    const std::string text = print(made.kernels[0]);
    CHECK(text.find("vector_load x_v = x[") != std::string::npos);
    CHECK(text.find("= load x[") == std::string::npos);
  }
}

TEST_CASE("nests: elements of a vector go to accumulators in turns, which are combined behind the walk",
          "[stitch][emulated]") {
  Graph g("rows");
  const Tensor x = g.input("x", f32, {13, 200});
  g.output("y", softmax(x));
  g.output("position", argmax(x, 1));
  for (const char* splits :
       {"r:grid r:warp2 c:serial c:lane32 c:vector4", "r:grid c:serial c:warp2 c:lane32 c:vector4",
        "r:grid r:warp2 c:serial r:lane4 c:lane8 c:vector4",
        "r:grid c:serial c:grid3 c:warp2 c:lane32 c:vector4",
        "r:serial r:grid2 r:warp2 c:serial c:warp2 c:lane32 c:vector4"}) {
    for (const int accumulators : {2, 4}) {
      Choices choices = loops(splits);
      choices.accumulators = accumulators;
      const runtime::Values launches = answers(g, choices);
      choices.register_cache = splits_rows(choices) ? 0 : 32;
      const runtime::Values cached = answers(g, choices);
      for (const auto& [name, tensor] : launches) {
        INFO("{" << choices.to_string() << "} " << name);
        CHECK(tensor.data == cached.at(name).data);  // in the same order
      }
      if (choices.register_cache == 0) continue;
      choices.online_softmax = true;
      answers(g, choices);
    }
  }
}

TEST_CASE("nests: accumulators are a part of a vector, and of rows that are reduced", "[stitch][schedule]") {
  Graph rows("rows"), elements("elements");
  rows.output("y", sum(rows.input("x", f32, {13, 200}), {1}));
  elements.output("y", exp(elements.input("x", f32, {13, 200})));
  const auto made = [](const Graph& g, const char* splits, int accumulators) {
    PipelineOptions options;
    options.choose = [&](const ir::Graph&, const schedule::Segment&, const Target&) {
      Choices choices = loops(splits);
      choices.accumulators = accumulators;
      return schedule::KernelChoices{{choices}};
    };
    return print(run_pipeline(ir_of(g), target_profile("h200"), options).kernels.at(0));
  };
  const std::string two = made(rows, "r:grid c:serial c:warp2 c:lane32 c:vector4", 2);
  CHECK(two.find("row_acc: local f32[2]") != std::string::npos);
  CHECK(two.find("store row_acc[v_1_mod_2] = acc") != std::string::npos);
  const auto error = [&](const Graph& g, const char* splits, int accumulators) {
    return thrown_by([&] { made(g, splits, accumulators); });
  };
  CHECK(error(rows, "r:grid c:serial c:warp2 c:lane32 c:vector2", 4)
            .find("4 accumulators, which a vector of 2 cannot go to in turns") != std::string::npos);
  CHECK(error(rows, "r:grid c:serial c:warp2 c:lane32", 2).find("a vector of 1 cannot") != std::string::npos);
  CHECK(error(elements, "r:grid r:warp2 r:lane32 r:vector4", 2)
            .find("2 accumulators, where no row is reduced") != std::string::npos);
}
