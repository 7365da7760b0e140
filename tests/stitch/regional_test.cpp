// Regional kernels: phases whose blocks pass values on to themselves alone, with a block barrier between
// (docs/stitching.md). SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <functional>
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "fuzz/judge/execute.hpp"
#include "ir/graph/costly_ops.hpp"
#include "kernel/kernel_support.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/regional/slices.hpp"
#include "stitch/stitch_support.hpp"
#include "support/stitch_cases.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Scores of T values of D each, a softmax of the scores, and the sum of the values weighted by it.
Graph pooled(const Dim& batch, const Dim& length, const Dim& width) {
  Graph g("pooled");
  const Tensor values = g.input("values", f32, {batch, length, width}),
               query = g.input("query", f32, {batch, width});
  const Tensor scores = sum(values * broadcast_in_dim(query, {batch, length, width}, {0, 2}), {2});
  const Tensor weights = softmax(scores, -1);
  g.output("y", sum(values * broadcast_in_dim(weights, {batch, length, width}, {0, 1}), {1}));
  return g;
}

/// Rows of another length than the softmax's, computed with one of its columns.
Graph gated() {
  Graph g("gated");
  const Tensor weights = softmax(g.input("x", f32, {24, 20}), -1);
  const Tensor gate = reshape(slice(weights, 1, 3, 4), {24});
  g.output("y", g.input("h", f32, {24, 36}) * broadcast_in_dim(gate, {24, 36}, {0}));
  g.output("weights", weights);
  return g;
}

/// A sum of rows, a scan of the sums, and the scan over its maximum.
Graph scanned() {
  Graph g("scanned");
  const Tensor sums = sum(g.input("x", f32, {12, 40, 32}), {2});
  const Tensor scan = cumulative_sum(sums, 1);
  g.output("y", scan / max(scan, {1}, {.keep_dims = true}));
  return g;
}

/// Rows of a table that each row of indices picks, then what is above their mean.
Graph gathered() {
  Graph g("gathered");
  const Tensor picked = gather(g.input("table", f32, {50, 16}), g.input("index", i32, {10, 6}), 0);
  const Tensor lengths = sum(picked * picked, {2});
  g.output("y",
           picked * broadcast_in_dim(lengths / sum(lengths, {1}, {.keep_dims = true}), {10, 6, 16}, {0, 1}));
  return g;
}

bool is_regional(const Compiled& made) {
  return made.schedules.size() == 1 && made.schedules[0].segment.regional() && made.plan.steps.size() == 1;
}

/// How a run in checked mode was judged; choices are the model's, changed.
std::string outcome(const Graph& graph, std::uint64_t seed,
                    const std::function<void(schedule::KernelChoices&)>& change) {
  const fuzz::RunOptions options{
      .profile = "h200", .checked = true, .threads = 2, .shuffle_seed = seed, .optimization = 0};
  fuzz::Case program = case_of(graph, options);
  if (program.program.inputs.contains("index"))
    program.program.inputs["index"] = {fuzz::InputStyle::Kind::whole, 0, 49};
  fuzz::Batch batch({std::move(program)}, {},
                    [&](const ir::Graph& g, const schedule::Segment& segment, const Target& target) {
                      schedule::KernelChoices choices = schedule::model_choices(g, segment, target).value();
                      if (segment.regional()) change(choices);
                      return choices;
                    });
  const fuzz::Outcome result = batch.run(0);
  UNSCOPED_INFO(result.text);
  return std::string(to_string(result.verdict));
}

/// How often a run executes a costly op.
std::int64_t executed(std::string_view op, const Graph& graph) {
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  const Executable executable = compile(graph, device);
  Session session(executable);
  const std::vector<ir::CostlyOp>& ops = ir::costly_ops();
  const auto row =
      std::find_if(ops.begin(), ops.end(), [&](const ir::CostlyOp& each) { return each.name == op; });
  const auto number = static_cast<std::size_t>(row - ops.begin());
  std::int64_t count = 0;
  for (const runtime::KernelCounts& each : counted_run(executable, session))
    count += number < each.ops.size() ? each.ops[number] : 0;
  return count;
}

const std::string ok(to_string(fuzz::Verdict::ok));

}  // namespace

TEST_CASE("phases whose values stay in their slice are one kernel", "[stitch][schedule]") {
  for (const char* profile : {"h200", "a100", "v100"}) {
    for (const Graph& g : {pooled(256, 20, 36), gated(), scanned(), gathered()}) {
      INFO(g.name() << " on " << profile);
      const Compiled made = compiled(g, profile);
      REQUIRE(is_regional(made));
      CHECK(made.schedules[0].kernels[0].role == schedule::KernelSchedule::Role::regional);
      // What nothing else reads is in no memory but the block's.
      for (const ir::NodeId result : made.schedules[0].segment.results) CHECK(made.partition.stored[result]);
      CHECK(made.schedules[0].segment.results.size() == ir_of(g).outputs.size());
      CHECK(compiled(g, profile, {.experiments = experiments({.layers = 2})}).plan.steps.size() > 1);
    }
  }
}

TEST_CASE("a regional kernel is right for blocks of any size and number of slices, in any order",
          "[stitch][emulated]") {
  for (const Graph& g : {pooled(64, 20, 36), gated(), scanned(), gathered()}) {
    INFO(g.name());
    REQUIRE(is_regional(compiled(g, "h200")));
    for (const int threads : {32, 64, 256}) {
      for (const int slices : {1, 2}) {
        const auto change = [&](schedule::KernelChoices& choices) {
          choices.slices = slices;
          for (schedule::Choices& phase : choices.phases) {
            phase = schedule::with_threads(std::move(phase), threads);
            phase.set('r', schedule::Level::vector, 1).set('c', schedule::Level::vector, 1);
          }
        };
        for (std::uint64_t seed = 0; seed <= 2; ++seed) CHECK(outcome(g, seed, change) == ok);
      }
    }
  }
}

TEST_CASE("without its barriers a regional kernel faults", "[stitch][emulated]") {
  for (const Graph& g : {pooled(64, 20, 36), scanned()}) CHECK(check_barriers(g, "h200", {}) >= 2);
}

TEST_CASE("a regional kernel of symbolic dims is right for any of them", "[stitch][emulated]") {
  Graph g("symbolic");
  const Dim batch = g.dim("B", {.min = 0, .max = 400, .hint = 256}),
            length = g.dim("T", {.min = 1, .max = 64, .hint = 20});
  const Tensor x = g.input("x", f32, {batch, length, 12});
  const Tensor weights = softmax(sum(x, {2}), -1);
  g.output("y", sum(x * broadcast_in_dim(weights, {batch, length, 12}, {0, 1}), {1}));
  REQUIRE(is_regional(compiled(g, "h200")));
  const Device device = Device::emulated({.checked = true, .optimization = 0}), exact = Device::reference();
  const Executable executable = compile(g, device), oracle = compile(g, exact);
  for (const auto& [b, t] : {std::pair{5, 7}, {3, 64}, {1, 1}, {0, 9}}) {
    INFO(b << " " << t);
    std::vector<std::vector<std::byte>> results;
    for (const Executable* each : {&executable, &oracle}) {
      Session session(*each, {{"B", b}, {"T", t}});
      std::vector<float> values(static_cast<std::size_t>(b * t) * 12);
      for (std::size_t i = 0; i < values.size(); ++i)
        values[i] = static_cast<float>((i * 37 + 11) % 64) / 32 - 1;
      session.set("x", std::as_bytes(std::span(values)));
      session.run();
      results.push_back(session.get("y"));
    }
    REQUIRE(results[0].size() == results[1].size());
    for (std::size_t i = 0; i < results[0].size(); i += sizeof(float)) {
      float got = 0, right = 0;
      std::memcpy(&got, results[0].data() + i, sizeof got);
      std::memcpy(&right, results[1].data() + i, sizeof right);
      // A weighted mean of values below 1: a sum of 64 products, and a softmax of sums of 12.
      CHECK(std::abs(got - right) <= 1e-5);
    }
  }
}

TEST_CASE("what needs another slice, or more shared memory than a block has, stays apart",
          "[stitch][schedule]") {
  const auto regional = [](const auto& build) {
    Graph g("apart");
    build(g);
    const Compiled made = compiled(g, "h200");
    return std::any_of(made.partition.segments.begin(), made.partition.segments.end(),
                       [](const schedule::Segment& segment) { return segment.regional(); });
  };
  const auto rows = [](Graph& g) { return sum(g.input("x", f32, {64, 8, 32}), {2}); };
  CHECK(regional([&](Graph& g) { g.output("y", sum(exp(rows(g)), {1})); }));
  // Columns of what rows make; rows in another order; rows that data pick.
  CHECK_FALSE(regional([&](Graph& g) { g.output("y", sum(exp(rows(g)), {0})); }));
  CHECK_FALSE(regional([&](Graph& g) { g.output("y", sum(exp(reverse(rows(g), {0})), {1})); }));
  CHECK_FALSE(regional(
      [&](Graph& g) { g.output("y", sum(exp(gather(rows(g), g.input("at", i32, {64}), 0)), {1})); }));
}

TEST_CASE("a phase that waits for a GEMM joins nothing that another GEMM waits for", "[stitch][schedule]") {
  const auto build = [](bool waits) {
    Graph g("chain");
    const Tensor weights = softmax(g.input("x", f32, {64, 16}), -1);
    g.output("next", matmul(weights, g.parameter("w", f32, {16, 64})));
    Tensor rows = g.input("rows", f32, {64, 48});
    if (waits) rows = matmul(rows, g.parameter("v", f32, {48, 48}));
    g.output("y", rows * broadcast_to(slice(weights, 1, 2, 3), {64, 48}));
    const Compiled made = compiled(g, "h200");
    return std::any_of(made.partition.segments.begin(), made.partition.segments.end(),
                       [](const schedule::Segment& segment) { return segment.regional(); });
  };
  CHECK(build(false));
  CHECK_FALSE(build(true));
}

TEST_CASE("a value with a long slice lies in memory, and is no less right", "[stitch][emulated]") {
  Graph g("long");
  const Tensor x = g.input("x", f32, {8, 6000, 2});
  const Tensor rows = exp(sum(x, {2}));  // 24,000 bytes in a slice
  g.output("y", sum(rows, {1}) + max(rows, {1}));
  g.output("z", cumulative_sum(sum(rows * rows, {1}, {.keep_dims = true}), 1));
  for (const schedule::Schedule& schedule : compiled(g, "h200").schedules) {
    for (const schedule::BlockValue& each : schedule.in_block) CHECK(each.elements * 4 <= 16 << 10);
  }
  CHECK(outcome(g, 2, [](schedule::KernelChoices&) {}) == ok);
}

TEST_CASE("choices for a regional kernel divide its slices, and its blocks wait for no others", "[stitch]") {
  const Compiled made = compiled(pooled(256, 20, 36), "h200");
  const auto says = [&](const auto& change, const char* what) {
    const std::string text = misfit_after(made, change);
    INFO(text);
    return text.find(what) != std::string::npos;
  };
  CHECK(misfit_after(made, [](schedule::KernelChoices&) {}).empty());
  CHECK(says([](schedule::KernelChoices& c) { c.slices = 3; }, "3 slices per block, of 256"));
  CHECK(says([](schedule::KernelChoices& c) { c.slices = 0; }, "no slices"));
  CHECK(says([](schedule::KernelChoices& c) { c.blocks = 4; }, "wait for each other"));
  CHECK(says([](schedule::KernelChoices& c) { c.phases[0].set('c', schedule::Level::grid, 2); },
             "several launches"));
  const Compiled beside = compiled(gated(), "h200", {.experiments = experiments({.layers = 2})});
  schedule::KernelChoices sliced = beside.schedules.at(0).choices;
  sliced.slices = 2;
  CHECK_FALSE(schedule::misfit(beside.graph, beside.partition.segments.at(0), sliced, target_profile("h200"))
                  .empty());
}

TEST_CASE("slices are the outer dims that all phases keep in place", "[stitch][schedule]") {
  const auto count = [](const Graph& g) {
    const Compiled made = compiled(g, "h200", {.experiments = experiments({.layers = 2})});
    std::vector<schedule::Phase> phases;
    for (const schedule::Segment& segment : made.partition.segments) phases.push_back(segment.phases.at(0));
    const std::optional<schedule::Slices> slices = schedule::slices_of(made.graph, phases);
    return slices ? slices->count : Dim(0);
  };
  CHECK(count(pooled(256, 20, 36)).is(256));
  CHECK(count(gated()).is(24));
  CHECK(count(gathered()).is(10));
  Graph g("columns");
  g.output("y", sum(exp(sum(g.input("x", f32, {64, 8, 32}), {2})), {0}));
  CHECK(count(g).is(1));
  Graph h("turned");
  const Tensor rows = sum(h.input("x", f32, {12, 12, 32}), {2});
  h.output("y", exp(transpose(rows, {1, 0})) + h.input("z", f32, {12, 12}));
  CHECK(count(h).is(1));
}

TEST_CASE("a costly op before a broadcast is computed once for each row", "[stitch][emulated]") {
  Graph g("fig5");
  const Tensor p = pow(g.input("x", f32, {8192}), g.input("e", f32, {8192}));
  g.output("y", broadcast_in_dim(p, {8192, 1024}, {0}) + g.input("z", f32, {8192, 1024}));
  const Compiled made = compiled(g, "h200");
  REQUIRE(is_regional(made));
  CHECK(executed("pow", g) == 8192);
  CHECK(large_traffic(g).requested() == large_traffic(g).floor);
}

TEST_CASE("a costly op of columns is computed once by each block", "[stitch][emulated]") {
  Graph g("fig4");
  const Tensor x = g.input("x", f32, {2048, 256});
  const Tensor y = (x - sum(x, {1}, {.keep_dims = true})) *
                   broadcast_in_dim(tanh(g.input("g", f32, {256})), {2048, 256}, {1});
  g.output("y", y);
  g.output("most", max(x, {0}));
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.schedules.size() == 1);
  const schedule::PhaseSchedule& phase = made.schedules[0].phases[0];
  REQUIRE(phase.columns_once.size() == 1);
  CHECK(executed("tanh", g) == phase.kernels[0].grid.constant() * 256);
  CHECK(outcome(g, 1, [](schedule::KernelChoices&) {}) == ok);
  CHECK(check_barriers(g, "h200", {}) >= 2);
}

TEST_CASE("a donated output stays in place where a regional kernel would copy it", "[stitch]") {
  Graph g("donated");
  const Tensor h = g.input("h", f32, {64, 20, 36});
  const Tensor most = max(sum(h, {2}), {1});
  g.output("y", h * broadcast_in_dim(most, {64, 20, 36}, {0}), h);
  const Compiled made = compiled(g, "h200");
  REQUIRE(made.partition.in_place.choices.size() == 1);
  CHECK(made.partition.in_place.choices[0].taken());
  CHECK(made.partition.segments.size() == 2);
  CHECK(made.partition.segments[0].regional());
}

TEST_CASE("no block computes columns of which there are none", "[stitch][emulated]") {
  Graph g("none");
  const Tensor column = broadcast_in_dim(tanh(g.input("g", f32, {0})), {64, 0}, {1});
  g.output("y", sum(g.input("x", f32, {64, 0}) * column, {1}));
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  CHECK(output_bytes(g, device, {}) == output_bytes(g, Device::reference(), {}));
  const Compiled made = compiled(g, "h200");
  for (const schedule::Schedule& schedule : made.schedules) {
    schedule::KernelChoices once = schedule.choices;
    once.phases[0].columns_once = true;
    CHECK_FALSE(schedule::misfit(made.graph, schedule.segment, once, target_profile("h200")).empty());
  }
}

TEST_CASE("a regional kernel of empty rows is right", "[stitch][emulated]") {
  Graph g("empty");
  g.output("y", sum(sum(g.input("x", f32, {16, 64, 0}), {1}), {1}));
  REQUIRE(is_regional(compiled(g, "h200")));
  const Device device = Device::emulated({.checked = true, .optimization = 0});
  CHECK(output_bytes(g, device, {}) == output_bytes(g, Device::reference(), {}));
}
