// Horizontal kernels: which segments share a launch, that each of them computes what it would alone, and what
// stays apart (docs/horizontal.md). SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <fuse/fuse.hpp>
#include <map>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "stitch/stitch_support.hpp"
#include "support/devices.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// A sum of rows, a softmax, a scan, a transpose, a sum of columns and an element-wise op: every class, each
/// of another shape.
Graph one_of_each() {
  Graph g("one_of_each");
  g.output("sums", sum(exp(g.input("a", f32, {32, 256})), {1}));
  g.output("softmax", softmax(g.input("b", f32, {24, 100}), -1));
  g.output("scan", cumulative_sum(g.input("c", f32, {8, 33}), 1));
  g.output("turned", transpose(tanh(g.input("d", f32, {40, 50})), {1, 0}));
  g.output("columns", sum(g.input("e", f32, {60, 40}), {0}));
  g.output("elements", exp(g.input("f", f16, {7, 11, 13})));
  return g;
}

std::size_t launches(const Compiled& made) {
  std::size_t count = 0;
  for (const schedule::Step& step : made.plan.steps)
    count += std::holds_alternative<schedule::KernelStep>(step.work) ? 1 : 0;
  return count;
}

const CompileOptions apart = {.experiments = experiments({.layers = 2})};

}  // namespace

TEST_CASE("kernels of any class and shape become one launch", "[stitch]") {
  for (const char* profile : {"h200", "a100", "v100", "tiny3", "tiny2"}) {
    INFO(profile);
    const Compiled made = compiled(one_of_each(), profile);
    CHECK(launches(made) == 1);
    REQUIRE(made.schedules.size() == 1);
    const schedule::Schedule& schedule = made.schedules[0];
    CHECK(schedule.segment.horizontal());
    CHECK(schedule.phases.size() == 6);
    Dim blocks = 0;
    for (const schedule::PhaseSchedule& phase : schedule.phases) {
      CHECK(phase.kernels.size() == 1);
      CHECK(phase.kernels[0].block_threads == schedule.kernels[0].block_threads);
      blocks = blocks + phase.kernels[0].grid;
    }
    CHECK(schedule.kernels[0].grid == blocks);
    CHECK(launches(compiled(one_of_each(), profile, apart)) == 6);
  }
}

TEST_CASE("each part of a horizontal kernel computes what it would alone, bit by bit", "[stitch][emulated]") {
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0});
  Graph g("same_blocks");
  for (const std::int64_t rows : {300, 333, 400}) {
    const std::string n = std::to_string(rows);
    const Tensor x = g.input("x" + n, f32, {rows, 200});
    g.output("y" + n, x / sum(x * x, {1}, {.keep_dims = true}));
  }
  const Compiled together = compiled(g, "tiny3"), alone = compiled(g, "tiny3", apart);
  REQUIRE(launches(together) == 1);
  REQUIRE(launches(alone) == 3);
  std::map<ir::NodeId, schedule::Choices> choices;
  for (const schedule::Schedule& each : alone.schedules)
    choices[each.segment.phases[0].root] = each.choices.phases[0];
  bool same = true;
  for (const schedule::PhaseSchedule& phase : together.schedules[0].phases)
    same = same && phase.choices == choices.at(phase.computes.root);
  REQUIRE(same);
  CHECK(output_bytes(g, device, {}) == output_bytes(g, device, apart));
}

TEST_CASE("parts of other blocks, scans and tiles are right side by side", "[stitch][emulated]") {
  const Device device = Device::emulated({.profile = "tiny2", .checked = true, .optimization = 0});
  for (const auto& [name, bytes] : output_bytes(one_of_each(), Device::reference(), {})) {
    const auto got = output_bytes(one_of_each(), device, {});
    INFO(name);
    REQUIRE(got.at(name).size() == bytes.size());
    if (name == "elements") continue;  // of f16
    for (std::size_t i = 0; i < bytes.size(); i += sizeof(float)) {
      float exact = 0, value = 0;
      std::memcpy(&exact, bytes.data() + i, sizeof exact);
      std::memcpy(&value, got.at(name).data() + i, sizeof value);
      REQUIRE(value == Approx(exact).epsilon(1e-4));
    }
  }
}

TEST_CASE("arrays of one type in shared memory are shared by the parts", "[stitch]") {
  Graph g("shared");
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    g.output("y" + n, softmax(g.input("x" + n, f32, {3, 3000 + 500 * i}), -1));
  }
  const auto shared_bytes = [](const Compiled& made) {
    std::int64_t most = 0;
    for (const codegen::KernelInfo& kernel : made.source.kernels) most = std::max(most, kernel.shared_bytes);
    return most;
  };
  const Compiled together = compiled(g, "tiny3"), alone = compiled(g, "tiny3", apart);
  REQUIRE(launches(together) < launches(alone));
  CHECK(shared_bytes(together) <= shared_bytes(alone));
}

TEST_CASE("a part without elements has no blocks", "[stitch][emulated]") {
  Graph g("empty");
  const Dim n = g.dim("N", {.min = 0, .max = 100, .hint = 8}),
            m = g.dim("M", {.min = 0, .max = 100, .hint = 8});
  g.output("a", exp(g.input("x", f32, {n})));
  g.output("b", sum(g.input("z", f32, {m, 50}), {1}));
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0});
  const Executable executable = compile(g, device);
  for (const auto& [rows, columns] : {std::pair{0, 5}, {5, 0}, {0, 0}, {7, 3}}) {
    Session session(executable, {{"N", rows}, {"M", columns}});
    CHECK(session.prepared().launches() == (rows + columns > 0 ? 1 : 0));
    const std::vector<float> x(static_cast<std::size_t>(rows), 1),
        z(static_cast<std::size_t>(columns) * 50, 2);
    session.set("x", std::as_bytes(std::span(x)));
    session.set("z", std::as_bytes(std::span(z)));
    session.run();
    CHECK(session.get("a").size() == x.size() * sizeof(float));
    const std::vector<std::byte> sums = session.get("b");
    for (std::size_t i = 0; i < sums.size(); i += sizeof(float)) {
      float sum = 0;
      std::memcpy(&sum, sums.data() + i, sizeof sum);
      CHECK(sum == 100);
    }
  }
}

TEST_CASE("steps of one level alone become one, so that no chain of steps gets longer", "[stitch]") {
  // Two chains of products: each step of one runs beside the same step of the other.
  Graph g("chains");
  Tensor a = g.input("a", f32, {16, 64}), b = g.input("b", f32, {16, 64});
  for (int i = 0; i < 4; ++i) {
    const std::string n = std::to_string(i);
    a = tanh(matmul(a, g.parameter("u" + n, f32, {64, 64}))) * 0.5;
    b = exp(matmul(b, g.parameter("v" + n, f32, {64, 64}))) - 0.5;
  }
  g.output("a", a);
  g.output("b", b);
  PipelineOptions options;
  options.merge_gemms = false;
  const Compiled made = run_pipeline(ir_of(g), target_profile("h200"), options);
  CHECK(launches(made) == 4);
  options.partition.groups.layers = 3;
  CHECK(launches(run_pipeline(ir_of(g), target_profile("h200"), options)) == 8);
}

TEST_CASE("what reads the other's result, is long, or makes columns beside rows stays apart", "[stitch]") {
  const auto count = [](const auto& build) {
    Graph g("apart");
    build(g);
    return launches(compiled(g, "h200"));
  };
  CHECK(count([](Graph& g) {  // as long as many launches
          g.output("a", exp(g.input("x", f32, {1 << 13, 1 << 13})));
          g.output("b", sum(g.input("z", f32, {1 << 13, (1 << 13) + 4}), {1}));
        }) == 2);
  CHECK(count([](Graph& g) {
          const Tensor first = cumulative_sum(g.input("x", f32, {64, 64}), 1);
          g.output("a", first);
          g.output("b", cumulative_sum(first, 0));
        }) == 2);
}

TEST_CASE("updates in place of several caches are one launch", "[stitch][emulated]") {
  Graph g("caches");
  const Tensor at = g.input("at", i32, {});
  for (const char* name : {"keys", "values"}) {
    const std::string n = name;
    const Tensor cache = g.input(n, f32, {4, 64, 16}), fresh = g.input(n + "_now", f32, {4, 1, 16});
    g.output(n + "_next", dynamic_update_slice(cache, tanh(fresh), {0, at, 0}), cache);
  }
  const Compiled made = compiled(g, "tiny3");
  CHECK(launches(made) == 1);
  CHECK(made.partition.segments.at(0).horizontal());
  for (const schedule::Phase& phase : made.partition.segments[0].phases) CHECK(phase.in_place);
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0});
  CHECK(output_bytes(g, device, {}) == output_bytes(g, device, apart));
}

TEST_CASE("steps of an optimiser write over their inputs in one launch", "[stitch][emulated]") {
  Graph g("optimiser");
  for (int i = 0; i < 5; ++i) {
    const std::string n = std::to_string(i);
    const std::vector<Dim> dims = {8 + i, 30};
    const Tensor w = g.input("w" + n, f32, dims), m = g.input("m" + n, f32, dims);
    const Tensor moment = m * 0.9 + g.input("d" + n, f32, dims);
    g.output("m_next" + n, moment, m);
    g.output("w_next" + n, w - moment * 0.01, w);
  }
  const Compiled made = compiled(g, "tiny3");
  CHECK(launches(made) == 1);
  for (const schedule::InPlaceChoice& choice : made.partition.in_place.choices) CHECK(choice.taken());
  const Device device = Device::emulated({.profile = "tiny3", .checked = true, .optimization = 0});
  CHECK(output_bytes(g, device, {}) == output_bytes(g, device, apart));
}

TEST_CASE("choices for a horizontal kernel have one block size, one launch per part, and no blocks",
          "[stitch]") {
  const Compiled made = compiled(one_of_each(), "h200");
  const schedule::Segment& segment = made.partition.segments.at(0);
  const Target target = target_profile("h200");
  const schedule::KernelChoices chosen = made.schedules[0].choices;
  const auto misfit = [&](const auto& change) {
    schedule::KernelChoices wrong = chosen;
    change(wrong);
    return schedule::misfit(made.graph, segment, wrong, target);
  };
  CHECK(misfit([](schedule::KernelChoices&) {}).empty());
  CHECK(misfit([](schedule::KernelChoices& c) { c.blocks = 8; }).find("side by side") != std::string::npos);
  CHECK(misfit([](schedule::KernelChoices& c) { c.phases.pop_back(); }).find("phases") != std::string::npos);
  const auto sums =
      std::find_if(segment.phases.begin(), segment.phases.end(), [&](const schedule::Phase& phase) {
        return info(made.graph[phase.root].op).relation == ir::Relation::reduce;
      });
  const auto number = static_cast<std::size_t>(sums - segment.phases.begin());
  CHECK(misfit([&](schedule::KernelChoices& c) {
          c.phases[number].set('c', schedule::Level::grid, 2);
        }).find("several launches") != std::string::npos);
  CHECK(misfit([&](schedule::KernelChoices& c) {
          c.phases[number].set('r', schedule::Level::warp, 16);
        }).find("threads in a block, and phase 0 has") != std::string::npos);
}
