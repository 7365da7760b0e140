// Rows of a length that is known late: kernels test whether vectors divide it, and walk one element at a time
// where they do not. SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/segments/vector_width.hpp"
#include "stitch/rows_of_any_length.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;
using schedule::Level;

namespace {

/// Rows of S elements, of which the next value needs all: scaled, masked by a bias of S, normalised.
Graph attention(DType dtype, std::int64_t batch = 2) {
  Graph g("attention");
  const Dim s = g.dim("S", {.min = 1, .max = 1024, .hint = 512});
  const Tensor x = convert(g.input("x", dtype, {batch, s, s}), f32) * 0.125 + g.input("bias", f32, {s});
  g.output("y", convert(softmax(x), dtype));
  g.output("total", sum(x, {2}));
  return g;
}

Graph elements(std::int64_t rows) {
  Graph g("elements");
  const Dim s = g.dim("S", {.min = 0, .max = 4096, .hint = 1024});
  const Tensor x = g.input("x", f32, {rows, s}), bias = g.input("bias", f32, {s});
  g.output("y", exp(x) + bias);
  g.output("z", convert(x > bias, i8));
  return g;
}

/// Cut by the default and run by these choices, for rows that vectors divide and rows that they do not.
void check_lengths(const Graph& g, const Choices& choices, const char* profile) {
  std::vector<fuzz::Case> cases;
  for (const std::int64_t length : {1, 5, 8, 30, 64, 129}) {
    cases.push_back(case_of(
        g, {.profile = profile, .checked = true, .threads = 2, .shuffle_seed = 3, .optimization = 0}));
    cases.back().program.bindings = {{{"S", length}}};
  }
  fuzz::Batch batch(std::move(cases), {}, chooses(choices));
  for (std::size_t i = 0; i < batch.size(); ++i) {
    const fuzz::Outcome outcome = batch.run(i);
    INFO(ir_of(g).name << " {" << choices.to_string() << "} on " << profile << ", case " << i << ": "
                       << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

const kernel::Kernel& only_kernel(const Compiled& made) {
  REQUIRE(made.kernels.size() == 1);
  return made.kernels[0];
}

}  // namespace

TEST_CASE("vectors of rows known late are as wide as an access, behind a test of their symbols",
          "[stitch][schedule]") {
  const Compiled made = compiled(attention(bf16, 256), "h200");
  const schedule::Phase& phase = made.schedules.at(0).phases[0].computes;
  CHECK(schedule::widest_vector(made.graph, phase) == 8);
  const std::vector<Dim> tested = schedule::symbols_to_test(made.graph, phase, 8);
  REQUIRE(tested.size() == 1);
  CHECK(tested[0].name() == "S");
  CHECK(schedule::symbols_to_test(made.graph, phase, 1).empty());
  CHECK(made.schedules[0].kernels[0].tested == tested);
  CHECK(print(made.graph, made.schedules[0]).find(", by vectors where S is a multiple of 8") !=
        std::string::npos);
  const std::string text = print(only_kernel(made));
  CHECK(text.find("if S % 8 < 1") != std::string::npos);
  CHECK(text.find("if 0 < S % 8") != std::string::npos);
  CHECK(text.find("bind S_over8 = S / 8") != std::string::npos);
  CHECK(text.find("vector_load x_v") != std::string::npos);
}

TEST_CASE("what is known of a symbol is not tested, and what no test helps is walked one by one",
          "[stitch][schedule]") {
  const auto tested = [](const auto& rows) {
    Graph g("rows");
    g.output("y", softmax(g.input("x", f32, {300, rows(g)})));
    const Compiled made = compiled(g, "h200");
    const schedule::Phase& phase = made.schedules.at(0).phases[0].computes;
    std::string text;
    for (const int vector : {2, 4})
      text += std::to_string(schedule::symbols_to_test(made.graph, phase, vector).size());
    return text + " of " + std::to_string(schedule::widest_vector(made.graph, phase));
  };
  const DimRange range{.min = 1, .max = 4096, .hint = 512};
  CHECK(tested([](Graph&) { return Dim(512); }) == "00 of 4");
  CHECK(tested([&](Graph& g) { return g.dim("S", range); }) == "11 of 4");
  CHECK(tested([&](Graph& g) { return 2 * g.dim("S", range); }) == "01 of 4");
  CHECK(tested([&](Graph& g) { return 4 * g.dim("S", range); }) == "00 of 4");
  CHECK(tested([&](Graph& g) { return g.dim("S", range) + 1; }) == "11 of 1");
  CHECK(tested([&](Graph& g) { return g.dim("S", range) + g.dim("T", range); }) == "22 of 4");
  CHECK(tested([&](Graph& g) { return g.dim("S", range) * g.dim("T", range); }) == "11 of 4");
  // The half of a multiple of 4 is none.
  CHECK(tested([&](Graph& g) { return g.dim("S", range) / 2; }) == "00 of 1");
  CHECK(tested([&](Graph& g) { return 4 * (g.dim("S", range) / 2); }) == "00 of 4");
  CHECK(tested([&](Graph& g) { return g.dim("S", range) * (g.dim("T", range) / 2); }) == "11 of 4");
  CHECK(tested([&](Graph& g) {
          const Dim s = g.dim("S", range);
          g.assume(divisible(s, 2));
          return s;
        }) == "01 of 4");
  // No value of the symbol is a multiple.
  CHECK(tested([](Graph& g) { return g.dim("S", {.min = 1, .max = 3, .hint = 2}); }) == "00 of 1");
}

TEST_CASE("a test is for lengths that are usual: the hint decides whether the cost model asks for one",
          "[stitch][schedule]") {
  const auto vector = [](std::int64_t hint) {
    Graph g("rows");
    g.output("y", sum(g.input("x", f32, {1 << 20, g.dim("S", {.min = 1, .max = 4096, .hint = hint})}), {1}));
    return compiled(g, "h200").schedules.at(0).phases[0].choices.vector();
  };
  CHECK(vector(512) == 4);
  CHECK(vector(510) == 2);
  CHECK(vector(511) == 1);
}

TEST_CASE("rows answer right whether vectors divide them or not, by every usual nest", "[stitch][emulated]") {
  using namespace schedule;  // NOLINT
  for (const char* profile : {"h200", "tiny2"}) {
    for (const std::vector<Split>& splits :
         {nest_of_lanes(64, 8, 4), nest_of_lanes(96, 32, 2), nest_of_blocks(64, 4),
          nest_of_shared_rows(64, 3, 4), in_turns(nest_of_blocks(64, 4), 7)}) {
      check_lengths(attention(f32), {.splits = splits}, profile);
      if (!splits_rows({.splits = splits})) {
        check_lengths(attention(f32), {.splits = splits, .online_softmax = true}, profile);
        check_lengths(attention(bf16), {.splits = splits, .shared_cache = 48}, profile);
      }
      check_lengths(attention(bf16), {.splits = splits, .register_cache = 64}, profile);
    }
    check_lengths(attention(f32),
                  {.splits = nest_of_shared_rows(64, 3, 4), .blocks = 3, .register_cache = 64}, profile);
    check_lengths(attention(bf16), {.splits = nest_of_blocks(64, 4), .register_cache = 64, .packed = true},
                  profile);
  }
  check_lengths(attention(bf16),
                {.splits = nest_of_shared_rows(64, 2, 4, Level::cluster), .register_cache = 64}, "h200");
}

TEST_CASE("elements answer right whether vectors divide them or not, and blocks are as many",
          "[stitch][emulated]") {
  const Graph g = elements(3);
  for (const char* profile : {"h200", "tiny3"}) {
    check_lengths(g, {.splits = schedule::nest_of_elements(64, 4)}, profile);
    check_lengths(g, {.splits = schedule::nest_of_elements(96, 2)}, profile);
    check_lengths(g, {.splits = in_turns(schedule::nest_of_elements(64, 4), 2)}, profile);
  }
  const Compiled made = compiled(elements(1 << 14), "h200");
  const schedule::PhaseSchedule& phase = made.schedules.at(0).phases[0];
  REQUIRE(phase.kernels.size() == 1);
  REQUIRE(!phase.kernels[0].tested.empty());
  const schedule::PhaseSchedule alone = without_vectors(phase);
  CHECK(units(alone.kernels[0].nest, Level::grid) == units(phase.kernels[0].nest, Level::grid));
  CHECK(schedule::defect_of(alone.kernels[0].nest) == "");
}

TEST_CASE("an extent that is a quotient of a symbol is whole, whatever the symbol divides",
          "[stitch][emulated]") {
  for (const std::int64_t known : {1, 4}) {
    Graph g("half");
    const Dim s = g.dim("S", {.min = 0, .max = 1 << 16, .hint = 1024});
    if (known > 1) g.assume(divisible(s, known));
    const Tensor x = g.input("x", f32, {3, s / 2});
    g.output("y", exp(x) + 1);
    g.output("total", sum(g.input("z", f32, {1 << 14, s / 2}), {1}));
    std::vector<fuzz::Case> cases;
    for (const std::int64_t length : {0, 4, 12, 16, 20, 64}) {
      cases.push_back(case_of(g, {.checked = true, .threads = 2, .optimization = 0}));
      cases.back().program.bindings = {{{"S", length}}};
    }
    fuzz::Batch batch(std::move(cases));
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const fuzz::Outcome outcome = batch.run(i);
      INFO("case " << i << ": " << outcome.text);
      CHECK(!fuzz::is_failure(outcome.verdict));
    }
  }
}

TEST_CASE("both ways of a kernel have one segment of shared memory", "[stitch][schedule]") {
  Graph g("rows");
  const Dim s = g.dim("S", {.min = 1, .max = 1 << 24, .hint = 8192});
  g.output("y", softmax(g.input("x", f32, {300, s})));
  Graph known("rows");
  known.output("y", softmax(known.input(
                        "x", f32, {300, 4 * known.dim("S", {.min = 1, .max = 1 << 22, .hint = 2048})})));
  const Compiled tested = compiled(g, "h200"), plain = compiled(known, "h200");
  REQUIRE(tested.schedules[0].phases[0].choices == plain.schedules[0].phases[0].choices);
  CHECK(tested.source.kernels[0].shared_bytes == plain.source.kernels[0].shared_bytes);
}
