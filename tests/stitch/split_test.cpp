// Rows that several blocks share, through all stages: each pass in a launch of its own, or in one kernel
// whose blocks hold their parts and wait for each other; and phases of one kernel.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "stitch/rows_of_any_length.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;
using schedule::KernelSchedule;

namespace {

/// Three passes; the mean is a result of its own, and a row stage.
Graph normalised(std::int64_t rows, std::int64_t columns) {
  Graph g("normalised");
  const Tensor x = g.input("x", f32, {rows, columns});
  const Tensor average = mean(x, {1}, {.keep_dims = true}), apart = x - average;
  const Tensor variance = mean(apart * apart, {1}, {.keep_dims = true});
  g.output("y", apart * rsqrt(variance + 1e-5));
  g.output("mean", average);
  g.output("position", argmax(x, 1));
  return g;
}

Compiled chosen(const Graph& g, const char* profile, const Choices& choices) {
  PipelineOptions options;
  options.choose = chooses(choices);
  return run_pipeline(ir_of(g), target_profile(profile), options);
}

std::vector<KernelSchedule::Role> roles(const schedule::Schedule& schedule) {
  std::vector<KernelSchedule::Role> result;
  for (const KernelSchedule& kernel : schedule.kernels) result.push_back(kernel.role);
  return result;
}

}  // namespace

TEST_CASE("each pass over split rows is a launch; one kernel holds", "[stitch][schedule]") {
  using Role = KernelSchedule::Role;
  const Graph g = normalised(6, 4096);
  const Compiled apart =
      chosen(g, "h200", {.splits = schedule::nest_of_shared_rows(256, 4), .register_cache = 32});
  REQUIRE(apart.schedules.size() == 1);
  CHECK(roles(apart.schedules[0]) == std::vector{Role::partial, Role::partial, Role::combine});
  CHECK(apart.schedules[0].phases[0].cached.empty());  // from launch to launch nothing stays
  CHECK(apart.schedules[0].scratch.size() == 4);
  for (const schedule::ScratchArray& array : apart.schedules[0].scratch) CHECK(array.elements.is(24));

  const Compiled joined = chosen(
      g, "h200", {.splits = schedule::nest_of_shared_rows(256, 4), .blocks = 24, .register_cache = 32});
  CHECK(roles(joined.schedules[0]).back() == Role::cooperative);
  CHECK(!joined.schedules[0].phases[0].cached.empty());
  CHECK(joined.schedules[0].phases[0].elements_per_thread == 4);
  const schedule::Step& step = joined.plan.steps.back();
  CHECK(step.cooperative);
  CHECK(std::get<schedule::KernelStep>(step.work).fallback.size() == 3);
}

TEST_CASE("the blocks of a row wait for each other alone, each row's by a counter of its own",
          "[stitch][schedule]") {
  const auto text_of = [](int blocks) {
    const Compiled made =
        chosen(normalised(6, 4096), "h200",
               {.splits = schedule::nest_of_shared_rows(256, 4), .blocks = blocks, .register_cache = 32});
    const auto& step = std::get<schedule::KernelStep>(made.plan.steps.back().work);
    const std::vector<Dim>& counters = made.plan.values[step.counter.value()].dims;
    CHECK(counters == std::vector<Dim>{schedule::barrier_counters(made.schedules[0])});
    const auto& zeroed = std::get<schedule::MemsetStep>(made.plan.steps.front().work);
    CHECK(product(made.plan.values[zeroed.to].dims).min() >= counters[0].constant());
    return print(made.kernels.back());
  };
  const std::string six = text_of(26), one = text_of(4);
  CHECK(six.find("barrier: global i32[7]") != std::string::npos);
  CHECK(six.find("barrier groups of 4 barrier[1..]") != std::string::npos);
  CHECK(six.find("barrier grid") == std::string::npos);
  CHECK(one.find("barrier: global i32[1]") != std::string::npos);
  CHECK(one.find("barrier grid barrier") != std::string::npos);
  CHECK(one.find("barrier groups") == std::string::npos);
}

TEST_CASE("groups and blocks that are in none answer right, checked", "[stitch][emulated]") {
  std::vector<fuzz::Case> cases;
  for (std::uint64_t seed = 0; seed <= 3; ++seed) {
    cases.push_back(
        case_of(normalised(7, 1000),
                {.profile = "h200", .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0}));
  }
  // 17 blocks: three rows at a time, in turns, and two blocks that only keep step.
  fuzz::Batch batch(
      std::move(cases), {},
      chooses({.splits = schedule::nest_of_shared_rows(64, 5), .blocks = 17, .register_cache = 32}));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const fuzz::Outcome outcome = batch.run(i);
    INFO(i << ": " << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

TEST_CASE("few long rows fill the device, and are read once", "[stitch][schedule]") {
  const Compiled few = compiled(normalised(6, 1 << 16), "a100");
  REQUIRE(few.schedules.size() == 1);
  const Choices& choices = few.schedules[0].phases[0].choices;
  CHECK(splits_rows(choices));
  CHECK(choices.blocks % choices.blocks_per_row() == 0);
  CHECK(choices.blocks >= 64);
  CHECK(!few.schedules[0].phases[0].cached.empty());
  // Many rows fill it by themselves.
  CHECK_FALSE(splits_rows(compiled(normalised(4096, 2048), "h200").schedules[0].phases[0].choices));
}

TEST_CASE("split stages answer right, checked, whatever the order of threads", "[stitch][emulated]") {
  std::vector<fuzz::Case> cases;
  for (const char* profile : {"h200", "tiny3", "tiny2"}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      // Rows in turns on the small ones, at once on the large one.
      cases.push_back(case_of(
          normalised(5, 9000),
          {.profile = profile, .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0}));
    }
  }
  fuzz::Batch batch(std::move(cases));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const fuzz::Outcome outcome = batch.run(i);
    INFO(i << ": " << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

TEST_CASE("no rows: blocks that share them do nothing", "[stitch][cluster][emulated]") {
  for (const bool cluster : {false, true}) {
    const schedule::Level blocks = cluster ? schedule::Level::cluster : schedule::Level::grid;
    const Choices choices{.splits = schedule::nest_of_shared_rows(64, 3, 1, blocks),
                          .blocks = cluster ? 0 : 3,
                          .register_cache = 32};
    fuzz::Batch batch({case_of(normalised(0, 900), {.profile = "tiny3", .checked = true, .optimization = 0})},
                      {}, chooses(choices));
    const fuzz::Outcome outcome = batch.run(0);
    INFO(outcome.text);
    CHECK(!fuzz::is_failure(outcome.verdict));  // nothing to compare
  }
}

TEST_CASE("split rows: one kernel or its launches, the same bits", "[stitch][emulated]") {
  for (const auto& [profile, g] :
       {std::pair{"a100", normalised(3, 40000)}, std::pair{"tiny3", normalised(1, 12000)}}) {
    REQUIRE(splits_rows(compiled(g, profile).schedules[0].phases[0].choices));
    const Device device = Device::emulated({.profile = profile, .checked = true, .optimization = 0});
    CHECK(output_bytes(g, device, {}) == output_bytes(g, device, {.grid_barriers = false}));
  }
}

TEST_CASE("without any one of its barriers a kernel of split rows or of phases faults",
          "[stitch][emulated]") {
  Graph phases("phases");
  const Tensor x = phases.input("x", f32, {50, 40});
  phases.output("y", sum(x / sum(x, {0}, {.keep_dims = true}), {1}));
  CHECK(check_barriers(normalised(5, 9000), "tiny3", {}) >= 2);
  CHECK(check_barriers(phases, "tiny3", {.experiments = experiments({.stitch = Stitch::no_merge})}) >= 2);
}

TEST_CASE("the blocks of a row are a cluster where the device has them", "[stitch][cluster]") {
  const auto choices_on = [](const char* profile) {
    return compiled(stitch::group_norm(f32, 1024, 1024), profile).schedules.at(0).phases[0].choices;
  };
  CHECK(choices_on("h200").cluster() > 1);
  CHECK(choices_on("h200").blocks_per_row() <= 16);
  CHECK(choices_on("a100").cluster() == 1);

  const Graph g = normalised(6, 4096);
  const Choices choices{.splits = schedule::nest_of_shared_rows(256, 4, 1, schedule::Level::cluster),
                        .register_cache = 32};
  const Compiled one = chosen(g, "h200", choices);
  REQUIRE(one.kernels.size() == 1);
  CHECK(one.kernels[0].cluster == 4);
  CHECK(one.schedules[0].scratch.empty());
  CHECK(!one.schedules[0].phases[0].cached.empty());
  CHECK(one.plan.steps.size() == 1);
  CHECK(!one.plan.steps[0].cooperative);
  const auto error = [&](const char* profile) { return thrown_by([&] { chosen(g, profile, choices); }); };
  CHECK(error("tiny3").find("a cluster of 4 blocks; tiny3 has clusters of up to") != std::string::npos);
}

TEST_CASE("clusters answer right, checked; without any one of their barriers they fault",
          "[stitch][cluster][emulated]") {
  for (const auto& [profile, parts] : {std::pair{"h200", 8}, std::pair{"tiny3", 2}, std::pair{"tiny3", 3}}) {
    INFO(profile << ' ' << parts);
    const Choices choices{.splits = schedule::nest_of_shared_rows(64, parts, 1, schedule::Level::cluster),
                          .register_cache = 32};
    const Graph g = normalised(5, 1500);
    const auto outcome = [&, choose = chooses(choices)](std::uint64_t seed, int drop) {
      fuzz::Case one = case_of(
          g, {.profile = profile, .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0});
      if (drop >= 0) one.options.fault = "barrier." + std::to_string(drop);
      return fuzz::Batch({std::move(one)}, {}, choose).run(0);
    };
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      const fuzz::Outcome right = outcome(seed, -1);
      INFO(right.text);
      CHECK(to_string(right.verdict) == to_string(fuzz::Verdict::ok));
    }
    const Compiled whole = chosen(g, profile, choices);
    const std::vector<codegen::OpLine>& lines = whole.source.kernels[0].lines;
    const auto barriers =
        std::count_if(lines.begin(), lines.end(), [](const codegen::OpLine& line) { return line.barrier; });
    CHECK(barriers == 6);  // a block's and a cluster's behind both passes, an arrival and a wait
    for (int barrier = 0; barrier < barriers; ++barrier) {
      INFO("barrier " << barrier);
      CHECK(to_string(outcome(1, barrier).verdict) == to_string(fuzz::Verdict::fault));
    }
  }
}

TEST_CASE("choices of split rows that cannot run are rejected", "[stitch][schedule]") {
  const Graph g = normalised(6, 4096);
  const auto error = [&](const Choices& choices) { return thrown_by([&] { chosen(g, "h200", choices); }); };
  CHECK(error({.splits = schedule::nest_of_shared_rows(256, 4), .blocks = 3, .register_cache = 32})
            .find("fewer blocks than parts") != std::string::npos);
  CHECK(error({.splits = schedule::nest_of_shared_rows(256, 4), .blocks = 8 * 132 + 1, .register_cache = 32})
            .find("h200 has slots for 1056") != std::string::npos);
  CHECK(error({.splits = schedule::nest_of_shared_rows(256, 4), .blocks = 8, .register_cache = 32}) ==
        "no error");
}

TEST_CASE("equal kernels of several phases are compiled once", "[stitch][pipeline]") {
  Graph g("twice");
  for (const char* name : {"a", "b"}) {
    const Tensor x = g.input(name, f32, {50, 40});
    g.output(std::string(name) + "_y", sum(x / sum(x, {0}, {.keep_dims = true}), {1}));
  }
  // With layer 3 they would be one group, and one kernel.
  const Compiled both =
      compiled(g, "h200", {.experiments = experiments({.layers = 2, .stitch = Stitch::no_merge})});
  REQUIRE(both.schedules.size() == 2);
  CHECK(both.first_kernel[0] == both.first_kernel[1]);
  CHECK(both.schedules[0].phases[0].computes.root != both.schedules[1].phases[0].computes.root);
}
