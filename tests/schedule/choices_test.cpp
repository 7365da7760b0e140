// The default choices for the profiles, and what a target or a segment does not allow.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

std::string refusal(const OneSegment& one, const schedule::Schedule& schedule, std::string_view profile) {
  return thrown_by([&] { verify(one.graph, schedule, target_profile(profile)); });
}

}  // namespace

TEST_CASE("a row beyond 31 bits has no known number of elements in a thread", "[schedule]") {
  const DimRange range{.min = 1, .max = 2147483647};
  const Dim B = Dim::symbol("B", range), T = Dim::symbol("T", range), U = Dim::symbol("U", range);
  const Choices choices{.splits = schedule::nest_of_lanes(128)};
  CHECK(elements_per_thread(Dim(2147483647), choices) == 67108864);
  CHECK(elements_per_thread(Dim(2147483648), choices) == 0);
  CHECK(elements_per_thread(B * T * U, choices) == 0);
}

TEST_CASE("default choices of the profiles", "[schedule]") {
  const std::vector<std::pair<const char*, Graph>> graphs = {
      {"exp [1000]", exp_graph({1000})},
      {"row sum [4096, 64]", sum_graph({4096, 64}, {1})},
      {"row sum [64, 1024]", sum_graph({64, 1024}, {1})},
      {"row sum [64, 1025]", sum_graph({64, 1025}, {1})},
      {"row sum [64, 16384]", sum_graph({64, 16384}, {1})},
      {"row sum [64, 30000]", sum_graph({64, 30000}, {1})},
      {"row sum [66, 30000]", sum_graph({66, 30000}, {1})},
      {"row sum [1, 30000]", sum_graph({1, 30000}, {1})},
      {"full sum [1000, 1000]", sum_graph({1000, 1000}, {0, 1})},
      {"column sum [1000, 31]", sum_graph({1000, 31}, {0})},
      {"column sum [1000, 32]", sum_graph({1000, 32}, {0})},
      {"column sum [100000, 4096]", sum_graph({100000, 4096}, {0})},
  };
  std::string text;
  for (const auto& [name, graph] : graphs) {
    const OneSegment one(graph);
    text += std::string(name) + "\n";
    for (const char* profile : {"h200", "tiny3", "tiny2"}) {
      const Choices choices = one.defaults(profile);
      text += std::string("  ") + profile + ": " + choices.to_string() + "\n";
      CHECK(choices == one.defaults(profile));
      const schedule::Schedule s = one.make(choices, target_profile(profile));  // which verifies it
      CHECK(s.choices == schedule::KernelChoices{{choices}});
    }
  }
  check_golden("schedule/model_choices.txt", text);
}

TEST_CASE("blocks that wait for each other share long rows, all of them", "[schedule]") {
  const auto rows = GENERATE(std::int64_t{1}, 3, 8, 30);
  const std::string profile = GENERATE("h200", "a100", "v100");
  CAPTURE(rows, profile);
  Graph g("softmax");
  g.output("y", softmax(g.input("x", f32, {rows, 4 << 20}), -1));
  const Compiled made = run_pipeline(ir_of(g), target_profile(profile));
  int split = 0;
  for (const schedule::Schedule& schedule : made.schedules) {
    for (const schedule::PhaseSchedule& phase : schedule.phases) {
      if (schedule.phases.size() < 2 || !splits_rows(phase.choices)) continue;
      ++split;
      CHECK(phase.choices.blocks_per_row() == phase.choices.blocks / rows);
    }
  }
  CHECK(split > 0);
}

TEST_CASE("verify refuses a block that the target does not run", "[schedule]") {
  const OneSegment one(sum_graph({37, 5000}, {1}));
  const auto with_block = [&](int threads) {
    return schedule::make_schedule(one.graph, one.segment, {{{.splits = schedule::nest_of_blocks(threads)}}},
                                   target_profile("h200"));
  };
  CHECK(refusal(one, with_block(256), "tiny2") == "no error");
  CHECK(refusal(one, with_block(512), "tiny2") ==
        "internal error: schedule of %1: a block of 512 threads; tiny2 has blocks of 32 to 256, in steps of "
        "32");
  CHECK(refusal(one, with_block(512), "tiny3") == "no error");
  CHECK(refusal(one, with_block(1024), "h200") == "no error");
  CHECK(refusal(one, with_block(2048), "h200") ==
        "internal error: schedule of %1: a block of 2048 threads; h200 has blocks of 32 to 1024, in steps of "
        "32");
}

TEST_CASE("verify refuses loops that do not fit the phase", "[schedule]") {
  const OneSegment reduces(sum_graph({37, 50}, {1})), computes(exp_graph({37}));
  schedule::Schedule wrong = reduces.make({.splits = schedule::nest_of_lanes(128)});
  wrong.phases[0].choices.splits = schedule::nest_of_elements(128);
  CHECK(refusal(reduces, wrong, "h200") == "internal error: schedule of %1: there is no loop c:serial");
  schedule::Schedule other = computes.make({.splits = schedule::nest_of_elements(128)});
  other.phases[0].choices.splits = schedule::nest_of_blocks(128);
  CHECK(refusal(computes, other, "h200") ==
        "internal error: schedule of %1: c:serial: the kernel has no such dim");
}

TEST_CASE("verify refuses missing launches and missing scratch", "[schedule]") {
  const OneSegment one(sum_graph({2, 100000}, {1}));
  schedule::Schedule none = one.make({.splits = schedule::nest_of_lanes(128)});
  none.kernels.clear();
  CHECK(refusal(one, none, "h200") == "internal error: schedule of %1: no launch");
  schedule::Schedule parts = one.make({.splits = schedule::nest_of_shared_rows(256, 4)});
  CHECK(refusal(one, parts, "h200") == "no error");
  schedule::Schedule alone = parts;
  alone.kernels.pop_back();
  CHECK(refusal(one, alone, "h200") == "internal error: schedule of %1: other launches than its phases have");
  schedule::Schedule bare = parts;
  bare.scratch.clear();
  CHECK(refusal(one, bare, "h200") == "internal error: schedule of %1: other scratch than its phases have");
  bare.phases[0].scratch.clear();
  CHECK(refusal(one, bare, "h200") == "internal error: schedule of %1: partial results without scratch");
}

TEST_CASE("verify wants one kernel, the last, to run the phases of a segment", "[schedule]") {
  Graph g("phases");
  g.output("y", softmax(softmax(g.input("x", f32, {64, 512}), 1), 0));
  PipelineOptions options;
  options.partition.cooperative = schedule::PartitionOptions::Cooperative::always;
  const Target target = target_profile("h200");
  const Compiled made = run_pipeline(ir_of(g), target, options);
  const auto phased = std::find_if(made.schedules.begin(), made.schedules.end(),
                                   [](const schedule::Schedule& each) { return each.phases.size() > 1; });
  REQUIRE(phased != made.schedules.end());
  const auto refusal_of = [&](const auto& change) {
    schedule::Schedule changed = *phased;
    change(changed.kernels);
    return thrown_by([&] { verify(made.graph, changed, target); });
  };
  using Kernels = std::vector<schedule::KernelSchedule>;
  CHECK(refusal_of([](Kernels&) {}) == "no error");
  for (const std::string& said : {refusal_of([](Kernels& all) { all.back() = all.front(); }),
                                  refusal_of([](Kernels& all) { all.front() = all.back(); }),
                                  refusal_of([](Kernels& all) { std::swap(all.front(), all.back()); })})
    CHECK(said == "internal error: schedule of " + made.graph.value_name(phased->segment.root) +
                      ": phases without a cooperative kernel");
}
