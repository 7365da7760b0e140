// What prepare uses again of the dims before (run_structure.hpp) changes nothing that it makes.
// SPDX-License-Identifier: Apache-2.0
#if FUSE_COMPILER_HAS_CUDA
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <string>
#include <thread>
#include <vector>

#include "base/access.hpp"
#include "compile/pipeline/experiments.hpp"
#include "cuda/fake_device.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "runtime/prepare/run_structure.hpp"
#include "support/examples.hpp"
#include "target/target.hpp"

namespace fuse::test {
namespace {

/// All that a run goes by.
std::string text_of(const Prepared::Impl& p) {
  std::string text =
      fmt::format("workspace {} of at least {}, packed {}, {} launches, {} gemms\n", p.workspace_bytes,
                  p.workspace_bound, p.packed_bytes, p.launches, p.gemm_calls);
  for (const auto* const steps : {&p.setup, &p.steps}) {
    for (const runtime::ReadyStep& step : *steps) {
      text += fmt::format("{} {} grid {} calls {}:", step.number, step.label, step.grid.x, step.calls);
      for (std::uint32_t i = step.arguments.first; i < step.arguments.first + step.arguments.count; ++i) {
        const runtime::ReadyArgument& argument = p.arguments[i];
        text += argument.is_extent ? fmt::format(" {}", argument.value)
                                   : fmt::format(" {}@{}+{}", argument.location.slot,
                                                 argument.location.offset, argument.location.bytes);
      }
      text += '\n';
    }
  }
  for (const runtime::Command& command : p.commands.list) {
    text += fmt::format("step {} stream {} records {} waits", command.step, command.stream, command.record);
    for (std::uint32_t i = command.waits.first; i < command.waits.first + command.waits.count; ++i)
      text += fmt::format(" {}", p.commands.waits[i]);
    text += '\n';
  }
  for (const schedule::Span& span : p.streams.spans) text += fmt::format("{} to {}\n", span.start, span.end);
  for (std::size_t slot = 0; slot < p.arguments_of.size(); ++slot)
    text += fmt::format("{}: {}\n", slot, fmt::join(p.arguments_of[slot], " "));
  return text + (p.split ? "split\n" + text_of(*p.split) : "");
}

/// Where a slice of a joined value ends in one part or in the other, by the dims.
Graph joined_and_cut() {
  Graph g("joined");
  const Dim b = g.dim("B", {.min = 0, .max = 512}), t = g.dim("T", {.min = 1, .max = 512}),
            s = g.dim("S", {.min = 1, .max = 512});
  const Tensor w = g.parameter("w", f32, {64, 64}), x = g.input("x", f32, {b, 64}),
               z = g.input("z", f32, {t, 64});
  const Tensor joined = concat({matmul(x, w), matmul(exp(z), w)}, 0);
  g.output("all", joined);
  g.output("y", matmul(slice(joined, 0, 0, s), w));
  g.output("sum", sum(x, {0}));
  return g;
}

/// As branches(), of which the dims say which one is the longest.
Graph symbolic_branches() {
  Graph g("branches");
  Tensor total = g.input("x", f32, {64});
  for (const char* name : {"B", "C", "D"}) {
    const Dim rows = g.dim(name, {.min = 1, .max = 1 << 21, .hint = 64});
    Tensor e = g.input(std::string("x_") + name, f32, {rows, 64});
    for (int i = 0; i < 3; ++i) e = exp(e) / sum(exp(e), {i % 2}, {.keep_dims = true});
    total = total + sum(e, {0});
  }
  g.output("y", total);
  return g;
}

struct Prepares {
  Graph graph;
  std::vector<DimValues> dims;
  CompileOptions options{};
};

std::vector<Prepares> cases() {
  std::vector<Prepares> all;
  all.push_back({joined_and_cut(),
                 {{{"B", 64}, {"T", 64}, {"S", 32}},
                  {{"B", 64}, {"T", 64}, {"S", 100}},
                  {{"B", 8}, {"T", 256}, {"S", 264}},
                  {{"B", 0}, {"T", 64}, {"S", 1}},
                  {{"B", 128}, {"T", 1}, {"S", 128}},
                  {{"B", 65}, {"T", 66}, {"S", 33}}}});
  all.push_back({symbolic_branches(),
                 {{{"B", 64}, {"C", 64}, {"D", 64}},
                  {{"B", 16000}, {"C", 64}, {"D", 2000}},
                  {{"B", 65}, {"C", 16000}, {"D", 64}},
                  {{"B", 1}, {"C", 2}, {"D", 16000}},
                  {{"B", 2000000}, {"C", 2000001}, {"D", 2000002}},
                  {{"B", 66}, {"C", 67}, {"D", 68}}},
                 {.experiments = experiments({.layers = 2}), .versions = 1, .builds = 1}});
  all.push_back({example("bert_layer"),
                 {{{"B", 1}, {"S", 1}},
                  {{"B", 8}, {"S", 128}},
                  {{"B", 9}, {"S", 127}},
                  {{"B", 256}, {"S", 512}},
                  {{"B", 2}, {"S", 3}}}});
  all.push_back({example("layer_norm_backward"),
                 {{{"B", 0}}, {{"B", 1}}, {{"B", 1000}}, {{"B", 1001}}, {{"B", 100000}}, {{"B", 1002}}}});
  return all;
}

TEST_CASE("prepare: what it makes depends on no dims before", "[versions][runtime]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  for (const auto& [graph, dims, options] : cases()) {
    INFO(graph.name());
    const Executable upwards = compile(graph, Device::cuda(), options),
                     downwards = compile(graph, Device::cuda(), options);
    std::vector<std::string> first, second;
    for (const DimValues& each : dims) first.push_back(text_of(*impl_of(upwards.prepare(each))));
    for (auto each = dims.rbegin(); each != dims.rend(); ++each)
      second.insert(second.begin(), text_of(*impl_of(downwards.prepare(*each))));
    for (std::size_t i = 0; i < dims.size(); ++i) CHECK(first[i] == second[i]);
    for (std::size_t i = 1; i < dims.size(); ++i) CHECK(first[i] != first[i - 1]);
  }
}

TEST_CASE("prepare: on other streams memory is needed at other times", "[versions][runtime]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Prepares branches = cases()[1];
  const Executable executable = compile(branches.graph, Device::cuda(), branches.options);
  const auto p = impl_of(executable.prepare(branches.dims[1]));
  REQUIRE(p->streams.streams > 1);
  const runtime::Program& program = *p->build->program;
  const runtime::Binding binding(program.signature, p->dims);
  const runtime::ValueLocations locations(program.plan, binding, p->bytes);
  runtime::RunStructure again(program.plan, p->steps, {}, locations), fresh = again;
  const schedule::StreamPlan one =
      schedule::plan_streams(again.tasks(), {.max_streams = 1}, target_profile("h200"));
  const auto offsets = [&](runtime::RunStructure& structure, const schedule::StreamPlan& streams) {
    return structure.plan_workspace(streams, {}, locations).offsets;
  };
  const auto apart = offsets(again, p->streams), together = offsets(again, one);
  CHECK(apart != together);
  CHECK(together == offsets(fresh, one));
  CHECK(apart == offsets(again, p->streams));
}

TEST_CASE("prepare: threads make the same of other dims at one time", "[versions][runtime][threads]") {
  const FakeEnvironment environment;
  const Fakes fakes;
  const Graph graph = joined_and_cut();
  const Executable executable = compile(graph, Device::cuda()), alone = compile(graph, Device::cuda());
  const auto dims = [](std::int64_t i) { return DimValues{{"B", i % 90}, {"T", 90}, {"S", 1 + i % 80}}; };
  std::vector<std::string> made(120);
  std::vector<std::thread> threads;
  for (std::size_t thread = 0; thread < 3; ++thread) {
    threads.emplace_back([&, thread] {
      for (std::size_t i = thread; i < made.size(); i += 3)
        made[i] = text_of(*impl_of(executable.prepare(dims(static_cast<std::int64_t>(i)))));
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (std::size_t i = 0; i < made.size(); ++i)
    CHECK(made[i] == text_of(*impl_of(alone.prepare(dims(static_cast<std::int64_t>(i))))));
}

}  // namespace
}  // namespace fuse::test
#endif
