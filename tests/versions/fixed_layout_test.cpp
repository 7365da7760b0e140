// The workspace for all dims: no prepare needs a larger one, and its layout holds on any streams.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include "runtime/prepare/fixed_layout.hpp"

#include <fmt/format.h>

#include <random>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "fuzz/grow/random.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/run_structure.hpp"
#include "support/examples.hpp"

namespace fuse::test {
namespace {

/// Three chains that nothing orders, and GEMMs at their ends.
Graph beside_each_other() {
  Graph g("beside");
  const Tensor w = g.parameter("w", f32, {64, 64});
  Tensor total = g.input("x", f32, {64});
  for (const char* name : {"B", "C", "D"}) {
    const Dim rows = g.dim(name, {.min = 0, .max = 1 << 16, .hint = 64});
    Tensor e = g.input(std::string("x_") + name, f32, {rows, 64});
    for (int i = 0; i < 3; ++i) e = exp(e) / sum(exp(e), {i % 2}, {.keep_dims = true});
    total = total + sum(matmul(e, w), {0});
  }
  g.output("y", total);
  return g;
}

/// Random numbers in the ranges of the symbols; their ends are frequent.
DimValues drawn_dims(const Executable& executable, fuzz::Random& random) {
  DimValues dims;
  for (const ir::Symbol& symbol : impl_of(executable)->signature().symbols) {
    const auto [min, max] = std::pair(symbol.range.min, std::min<std::int64_t>(symbol.range.max, 1 << 20));
    const std::int64_t small = random.between(min, std::min(max, min + 100));
    dims[symbol.name] = random.chance(0.2)   ? max
                        : random.chance(0.2) ? min
                        : random.chance(0.5) ? small
                                             : random.between(min, max);
  }
  return dims;
}

TEST_CASE("no prepare needs more than most_workspace_bytes, and its layout holds on all streams",
          "[versions][runtime][workspace]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const std::uint64_t seed = std::random_device()();
  CAPTURE(seed);
  fuzz::Random random(seed);
  const CompileOptions apart{.experiments = experiments({.layers = 2}), .versions = 1, .builds = 1};
  const std::vector<std::pair<Graph, CompileOptions>> graphs = {
      {example("bert_layer"), {}}, {example("transformer_block"), {}}, {example("layer_norm_backward"), {}},
      {example("softmax"), {}},    {beside_each_other(), {}},          {beside_each_other(), apart}};
  std::size_t held = 0, most_streams = 0;
  for (const auto& [graph, options] : graphs) {
    INFO(graph.name());
    const Executable executable = compile(graph, Device::cuda(), options);
    const std::optional<std::int64_t> most = executable.most_workspace_bytes();
    REQUIRE(most);
    std::int64_t largest = 0;
    for (int i = 0; i < 60; ++i) {
      const DimValues dims = drawn_dims(executable, random);
      std::string text;
      for (const auto& [name, value] : dims) text += fmt::format("{}={} ", name, value);
      CAPTURE(text);
      const auto p = impl_of(executable.prepare(dims));
      largest = std::max(largest, p->workspace_bytes);
      REQUIRE(p->workspace_bytes <= *most);
      if (!p->as_planned) continue;
      // The layout for all dims, judged by when this run needs which memory.
      const schedule::Plan& plan = p->build->program->plan;
      const auto layout = runtime::fixed_layout(plan, backend_of(executable.device())->most_gemm_scratch());
      REQUIRE(layout);
      const runtime::Binding binding(p->build->program->signature, dims);
      const runtime::ValueLocations locations(plan, binding, p->bytes);
      std::vector<runtime::Scratch> scratch;
      for (schedule::TaskId task = 0; task < p->steps.size(); ++task)
        if (p->steps[task].gemm && p->steps[task].gemm->workspace_bytes() > 0)
          scratch.push_back({task, p->steps[task].gemm->workspace_bytes()});
      runtime::RunStructure structure(plan, p->steps, scratch, locations);
      structure.plan_workspace(p->streams, scratch, locations);
      std::vector<std::int64_t> offsets = layout->offsets_for(plan, p->steps, scratch, locations);
      const bool holds = structure.holds(offsets);
      held += holds;
      most_streams = std::max<std::size_t>(most_streams, p->streams.streams);
      // Only where steps have no work may other ones come closer.
      const bool empty =
          std::any_of(dims.begin(), dims.end(), [](const auto& each) { return each.second == 0; });
      CHECK((holds || empty));
    }
    // It is no wild overestimate where all symbols are at their ends.
    DimValues ends;
    for (const ir::Symbol& symbol : impl_of(executable)->signature().symbols)
      ends[symbol.name] = symbol.range.max;
    if (graph.name() == "bert_layer") CHECK(*most <= 1.6 * executable.prepare(ends).workspace_bytes());
  }
  CHECK(held > 200);
  CHECK(most_streams > 1);
}

TEST_CASE("a layout in which memories that meet share a byte does not hold",
          "[versions][runtime][workspace]") {
  std::vector<runtime::LiveRange> ranges{{100, 0, 2}, {100, 1, 3}, {100, 3, 4}};
  const runtime::MemoryPlanner planner(ranges);
  CHECK(planner.holds(std::vector<std::int64_t>{0, 100, 0}));
  CHECK_FALSE(planner.holds(std::vector<std::int64_t>{0, 99, 0}));
  CHECK_FALSE(planner.holds(std::vector<std::int64_t>{0, 100, 199}));
  CHECK_FALSE(planner.holds(std::vector<std::int64_t>{0, 0, 100}));
  CHECK(planner.end(std::vector<std::int64_t>{0, 100, 7}) == 200);
}

TEST_CASE("the bound follows from ranges and assumptions", "[versions][runtime][workspace]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const auto most = [](std::optional<std::int64_t> longest, std::optional<std::int64_t> tokens) {
    Graph g("rows");
    const Dim b = g.dim("B", {.min = 1, .max = 64});
    const Dim s = longest ? g.dim("S", {.min = 1, .max = *longest}) : g.dim("S");
    if (tokens) g.assume(at_most(b * s, *tokens));
    const Tensor w = g.parameter("w", f32, {32, 32});
    const Tensor x = matmul(g.input("x", f32, {b * s, 32}), w);
    g.output("y", matmul(gelu(x), w));
    return compile(g, Device::cuda(), {.versions = 1, .builds = 1}).most_workspace_bytes();
  };
  constexpr std::int64_t row = 32 * 4, scratch = 32 << 20;
  const auto plain = most(100, {});
  REQUIRE(plain);
  CHECK(*plain >= 64 * 100 * row);
  CHECK(*plain <= 2 * 64 * 100 * row + scratch + 1024);
  const auto assumed = most(100, 1000);
  REQUIRE(assumed);
  CHECK(*plain - *assumed >= (6400 - 1000) * row);
  CHECK(most({}, 1000) <= most(1000, 1000));
  Graph free("free");
  Dim rows = 1;
  for (const char* name : {"A", "B", "C", "D"}) rows = rows * free.dim(name);
  const Tensor w = free.parameter("w", f32, {32, 32});
  free.output("y", matmul(matmul(free.input("x", f32, {rows, 32}), w), w));
  CHECK_FALSE(compile(free, Device::cuda()).most_workspace_bytes());  // beyond 2^63 bytes
  Graph fixed("fixed");
  fixed.output("y", softmax(exp(fixed.input("x", f32, {64, 64}))));
  const Executable one = compile(fixed, Device::cuda());
  CHECK(one.most_workspace_bytes() == one.prepare().workspace_bytes());
}

}  // namespace
}  // namespace fuse::test
#endif
