// Elements side by side in a thread, and several rows a warp: where they fit, what they move, and that they
// answer right. SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <utility>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "compile/traffic.hpp"
#include "schedule/nest/usual_nests.hpp"
#include "schedule/schedule_support.hpp"
#include "schedule/segments/vector_width.hpp"
#include "support/catch.hpp"
#include "support/counted_run.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT
using schedule::Choices;

namespace {

int widest(const std::function<Tensor(Graph&)>& fill) {
  Graph g("g");
  g.output("y", fill(g));
  const OneSegment one(g);
  return schedule::widest_vector(one.graph, one.phase());
}

/// Two passes over rows, and a result of one value a row.
Graph normalised(const Dim& rows, std::int64_t columns, DType dtype, Graph g = Graph("normalised")) {
  const Tensor x = g.input("x", dtype, {rows, columns}), w = g.parameter("w", dtype, {columns});
  const Tensor value = convert(x, f32), total = sum(value * value, {1}, {.keep_dims = true});
  g.output("y", convert(value / total * convert(w, f32), dtype));
  g.output("position", argmax(value, 1));
  return g;
}

Choices defaults(const Graph& g, const char* profile = "h200") {
  return run_pipeline(ir_of(g), target_profile(profile), {}).schedules.at(0).phases[0].choices;
}

}  // namespace

TEST_CASE("the widest vector is 16 bytes of the largest value that is walked", "[stitch][schedule]") {
  const auto of = [](DType dtype, const std::vector<Dim>& dims) {
    return widest([&](Graph& g) { return abs(g.input("x", dtype, dims)); });
  };
  CHECK(of(f32, {8, 1024}) == 4);
  CHECK(of(f64, {8, 1024}) == 2);
  CHECK(of(i8, {8, 1024}) == 8);
  CHECK(of(f32, {8, 1026}) == 2);
  CHECK(of(f32, {8, 1025}) == 1);
  CHECK(of(f32, {1024, 1}) == 4);
  CHECK(widest([](Graph& g) {
          return abs(g.input("x", f32, {g.dim("B", {.min = 1, .max = 1024}), 96}));
        }) == 4);
  const auto of_symbol = [](auto assume) {
    Graph g("of_symbol");
    const Dim n = g.dim("N", {.min = 1, .max = 4096, .hint = 512}), m = g.dim("M", {.min = 1, .max = 64});
    assume(g, n, m);
    g.output("y", abs(g.input("x", f32, {64, n})));
    const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), {});
    const schedule::Phase& phase = made.partition.segments.at(0).phases.at(0);
    int known = schedule::widest_vector(made.graph, phase);  // without a test
    while (!symbols_to_test(made.graph, phase, known).empty()) known /= 2;
    return known;
  };
  CHECK(of_symbol([](Graph&, const Dim&, const Dim&) {}) == 1);
  CHECK(of_symbol([](Graph& g, const Dim& n, const Dim&) { g.assume(divisible(n, 12)); }) == 4);
  CHECK(of_symbol([](Graph& g, const Dim& n, const Dim&) { g.assume(divisible(n, 6)); }) == 2);
  CHECK(of_symbol([](Graph& g, const Dim& n, const Dim&) { g.assume(divisible(n, 9)); }) == 1);
  CHECK(of_symbol([](Graph& g, const Dim& n, const Dim& m) { g.assume(equal(n, m * 8 + 4)); }) == 4);
  CHECK(of_symbol([](Graph& g, const Dim& n, const Dim& m) { g.assume(equal(n, m * 8 + 2)); }) == 2);
  CHECK(widest([](Graph& g) {
          return convert(convert(g.input("x", bf16, {64}), f32) + g.input("z", f32, {64}), bf16);
        }) == 4);
  CHECK(widest([](Graph& g) { return exp(convert(g.input("x", bf16, {64}), f32)); }) == 4);
  CHECK(widest([](Graph& g) { return convert(exp(convert(g.input("x", bf16, {64}), f32)), bf16); }) == 8);
}

TEST_CASE("vectors need neighbours that lie side by side", "[stitch][schedule]") {
  const auto input = [](Graph& g) { return g.input("x", f32, {64, 64}); };
  CHECK(widest([&](Graph& g) { return input(g) + g.input("b", f32, {64}); }) == 4);
  CHECK(widest([&](Graph& g) { return input(g) + g.input("b", f32, {64, 1}); }) == 4);
  CHECK(widest([&](Graph& g) {
          const Tensor x = input(g);
          return x + transpose(x, {1, 0});
        }) == 1);
  CHECK(widest([&](Graph& g) { return exp(transpose(g.input("z", f32, {4, 8, 64}), {1, 0, 2})); }) == 4);
  CHECK(widest([&](Graph& g) { return exp(reshape(input(g), {2048, 2})); }) == 2);
  CHECK(widest([&](Graph& g) { return exp(slice(input(g), 1, 4, 60)); }) == 4);
  CHECK(widest([&](Graph& g) { return exp(slice(input(g), 1, 2, 50)); }) == 2);
  CHECK(widest([&](Graph& g) { return exp(slice(input(g), 1, 0, 64, 2)); }) == 1);
  CHECK(widest([&](Graph& g) { return exp(reverse(input(g), {1})); }) == 1);
  CHECK(widest([&](Graph& g) { return exp(gather(input(g), g.input("at", i32, {9}), 0)); }) == 4);
  CHECK(widest([&](Graph& g) { return exp(gather(input(g), g.input("at", i32, {9}), 1)); }) == 1);
  CHECK(widest([&](Graph& g) { return sum(input(g), {1}); }) == 4);
  CHECK(widest([&](Graph& g) { return sum(input(g), {0}); }) == 1);
  CHECK(widest([&](Graph& g) { return cumulative_sum(input(g), 1); }) == 1);
}

TEST_CASE("by default, short rows share a warp and small tensors are walked one by one",
          "[stitch][schedule]") {
  const auto lanes = [](const Graph& g) { return units_of(defaults(g).splits, 'c', schedule::Level::lane); };
  CHECK(defaults(normalised(100000, 64, bf16)).vector() == 8);
  CHECK(lanes(normalised(100000, 64, bf16)) == 8);
  CHECK(defaults(normalised(100000, 64, f32)).vector() == 4);
  CHECK(lanes(normalised(100000, 64, f32)) == 8);    // two trips, each of whole cache lines
  CHECK(lanes(normalised(100000, 512, f32)) == 16);  // 32 elements a lane
  CHECK(defaults(normalised(100000, 16, bf16)).vector() == 8);
  CHECK(lanes(normalised(100000, 16, bf16)) == 2);
  CHECK(defaults(normalised(100000, 63, f32)).vector() == 1);
  CHECK(defaults(normalised(8, 64, bf16)).vector() == 2);  // no lane would have anything to do
  CHECK(lanes(normalised(8, 64, bf16)) == 32);
  CHECK(defaults(normalised(4096, 16384, bf16)).vector() == 8);
}

TEST_CASE("rows of one element or of none have choices", "[stitch][schedule]") {
  const auto of = [](auto columns_of) {
    Graph g("short");
    const Tensor x = g.input("x", f32, {1 << 20, columns_of(g)});
    g.output("y", x / sum(x, {1}, {.keep_dims = true}));
    return defaults(g);
  };
  const Choices late = of([](Graph& g) { return g.dim("N", {.min = 0, .max = 1 << 20, .hint = 1}); });
  const Choices none = of([](Graph&) { return Dim(0); });
  for (const Choices& choices : {late, none}) {
    INFO(choices.to_string());
    CHECK(choices.vector() == 1);
    CHECK(choices.block_threads() % 32 == 0);
    CHECK(choices.block_threads() > 0);
  }
}

TEST_CASE("a long row has no more threads than have something to do in its last step", "[stitch][schedule]") {
  const auto of = [](std::int64_t columns, DType dtype) {
    Graph g("long");
    const Tensor x = g.input("x", dtype, {100000, columns}), value = convert(x, f32);
    const Tensor total = sum(value, {1}, {.keep_dims = true}), part = value / total;
    g.output("y", convert(part / sum(part * part, {1}, {.keep_dims = true}) - value / -total, dtype));
    return defaults(g);
  };
  // 2816 vectors of 4: eight steps of 352 threads, not seven and a third of 384.
  CHECK(of(11264, f32).block_threads() == 352);
  CHECK(of(11264, f32).register_cache == schedule::most_cached);
  CHECK(of(16384, f32).block_threads() == 512);
  // Of 16 bits, packed: 1536 vectors of 8, in eight steps.
  CHECK(of(12288, bf16).packed);
  CHECK(of(12288, bf16).block_threads() == 192);
}

TEST_CASE("vectors and packed rows answer right, checked", "[stitch][emulated]") {
  std::vector<Choices> all;
  for (const int vector : {1, 2, 4}) {
    for (const int lanes : {2, 4, 8, 16, 32}) {
      all.push_back({.splits = schedule::nest_of_lanes(96, lanes, vector), .register_cache = 16});
    }
    all.push_back({.splits = schedule::nest_of_blocks(64, vector), .register_cache = 32});
    all.push_back({.splits = schedule::nest_of_blocks(64, vector)});
    all.push_back({.splits = schedule::nest_of_shared_rows(32, 2, vector), .register_cache = 32});
    all.push_back({.splits = schedule::nest_of_shared_rows(32, 2, vector, schedule::Level::cluster),
                   .register_cache = 32});
    all.push_back(
        {.splits = schedule::nest_of_shared_rows(32, 2, vector), .blocks = 4, .register_cache = 32});
  }
  for (const auto& [rows, columns] : {std::pair{37, 100}, std::pair{5, 44}, std::pair{64, 128}}) {
    std::size_t next = 0;
    std::vector<fuzz::Case> cases;
    for (std::size_t i = 0; i < all.size(); ++i) {
      cases.push_back(case_of(normalised(rows, columns, f32),
                              {.profile = "tiny3", .checked = true, .shuffle_seed = i, .optimization = 0}));
    }
    fuzz::Batch batch(std::move(cases), {}, [&](const ir::Graph&, const schedule::Segment&, const Target&) {
      return schedule::KernelChoices{{all[next++]}};
    });
    REQUIRE(next == all.size());
    for (std::size_t i = 0; i < batch.size(); ++i) {
      const fuzz::Outcome outcome = batch.run(i);
      INFO(rows << " x " << columns << ", " << all[i].to_string() << ": " << outcome.text);
      CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
    }
  }
}

TEST_CASE("rows of a number known late share warps, and the last warp is not full", "[stitch][emulated]") {
  Graph empty("normalised");
  const Dim B = empty.dim("B", {.min = 0, .max = 10000, .hint = 5000});
  const Graph g = normalised(B, 64, bf16, std::move(empty));
  REQUIRE(units_of(defaults(g, "tiny3").splits, 'c', schedule::Level::lane) == 8);
  REQUIRE(defaults(g, "tiny3").vector() == 8);
  for (const std::int64_t rows : {1, 3, 64, 67}) {
    fuzz::Case one = case_of(g, {.profile = "tiny3", .checked = true, .optimization = 0});
    one.program.bindings = {{{"B", rows}}};
    const fuzz::Outcome outcome = fuzz::run_alone(one);
    INFO(rows << ": " << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}

TEST_CASE("a symbol that is known to be a multiple is one in every index", "[stitch][emulated]") {
  Graph g("multiple");
  const Dim n = g.dim("N", {.min = 1, .max = 1 << 20, .hint = 1000});
  g.assume(divisible(n, 8));
  const Tensor x = g.input("x", bf16, {300, n});
  g.output("y", convert(softmax(convert(x, f32)), bf16));
  g.output("part", slice(x, 1, 16, n) * 2);
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), {});
  for (const schedule::Schedule& each : made.schedules)
    CHECK(schedule::widest_vector(made.graph, each.phases[0].computes) == 8);
  for (const schedule::Step& step : made.plan.steps) {
    const auto& work = std::get<schedule::KernelStep>(step.work);
    CHECK(work.extents.at(0).to_string() == (n / 8).to_string());
    CHECK(made.kernels[work.kernel].extents.at(0).name() == "N_over8");
  }
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable executable = compile(g, device);
  Session session(executable, {{"N", 2000}});
  const std::vector<runtime::KernelCounts> counts = counted_run(executable, session);
  const runtime::Traffic traffic =
      runtime::traffic_of(stages_of(executable), ir_of(g), {{"N", 2000}}, counts).large_values;
  CHECK(traffic.sectors() == traffic.requested());
  for (std::int64_t size : {24, 32, 2008}) {
    fuzz::Case one = case_of(g, {.profile = "tiny3", .checked = true, .threads = 2, .shuffle_seed = 3});
    one.program.bindings = {{{"N", size}}};
    fuzz::Batch batch({std::move(one)});
    const fuzz::Outcome outcome = batch.run(0);
    INFO(size << ": " << outcome.text);
    CHECK(to_string(outcome.verdict) == to_string(fuzz::Verdict::ok));
  }
}
