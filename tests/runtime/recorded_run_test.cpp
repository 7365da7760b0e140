// Runs by the order, the streams and the mode that decisions say. SPDX-License-Identifier: Apache-2.0
#include "runtime/prepare/recorded_run.hpp"

#include "base/access.hpp"
#include "decisions/decisions_support.hpp"
#include "runtime/runtime_support.hpp"
#include "support/branches.hpp"
#include "support/grid_kernels.hpp"

namespace fuse::test {
namespace {

Executable by_run(const Graph& g, const std::string& run, const Device& device = test_device()) {
  CompileOptions options;
  options.decisions = no_decisions(backend_of(device)->target()) + "run {" + run + "}\n";
  return compile(g, device, options);
}

/// "2/1 0/0": step 2 on stream 1, then step 0 on stream 0.
std::string dispatched(const WholeRun& run) {
  const Prepared::Impl& p = *impl_of(run.workspace)->prepared;
  std::string text;
  for (const runtime::Command& command : p.commands.list)
    text += (text.empty() ? "" : " ") + std::to_string(p.steps[command.step].number) + '/' +
            std::to_string(command.stream);
  return text;
}

/// A product of B rows, step 0, another of 4 rows, step 1, and two kernels that read one each.
Graph two_branches() {
  Graph g("branches");
  const Dim B = g.dim("B", {.min = 0, .max = 100, .hint = 8});
  const auto branch = [&](const std::string& name, const Dim& rows) {
    return matmul(g.input(name, f32, {rows, 8}), g.input(name + "_w", f32, {8, 8}));
  };
  g.output("y", branch("a", B));
  g.output("z", branch("b", 4));
  return g;
}

TEST_CASE("steps are dispatched in the order and on the streams that decisions say",
          "[runtime][decisions][emulated]") {
  const Graph g = two_branches();
  CHECK(dispatched(WholeRun(by_run(g, "order = 1 0, streams = 0 5"), {{"B", 3}})) == "1/5 0/0");
  CHECK(dispatched(WholeRun(by_run(g, "streams = 1 0"), {{"B", 3}})) == "0/1 1/0");
  CHECK(dispatched(WholeRun(by_run(g, "order = 1 0"), {{"B", 3}})).starts_with("1/"));
  // A step without rows has no task.
  CHECK(dispatched(WholeRun(by_run(g, "order = 1 0, streams = 3 2"), {{"B", 0}})) == "1/2");
}

TEST_CASE("a run in another order has the same results", "[runtime][decisions][emulated]") {
  const Graph g = branches(3);
  const Executable usual = compile(g, test_device());
  WholeRun first(usual);
  const schedule::RunDecision found = runtime::run_decision_of(first.workspace);
  const std::size_t steps = stages_of(usual).plan.steps.size();
  REQUIRE(found.order.size() == steps);
  REQUIRE(found.streams.size() == steps);
  // All on streams of their own.
  std::string streams;
  for (std::size_t i = 0; i < steps; ++i) streams += ' ' + std::to_string(i % 16);
  const std::vector<float> x(64 * 64, 0.25f);
  const auto result = [&](const Executable& executable) {
    Session session(executable);
    session.set("x", bytes_of(x));
    session.run();
    return session.get("y");
  };
  CHECK(result(by_run(g, "streams =" + streams)) == result(usual));
  // What was found is had again.
  const WholeRun again(by_run(g, to_string(found)));
  CHECK(dispatched(again) == dispatched(first));
  CHECK(again.prepared.workspace_bytes() == first.prepared.workspace_bytes());
}

TEST_CASE("steps without work are in what is written of a run", "[runtime][decisions][emulated]") {
  const Graph g = two_branches();
  const WholeRun none(by_run(g, "order = 1 0, streams = 3 2"), {{"B", 0}});
  CHECK(to_string(runtime::run_decision_of(none.workspace)) == "mode = streams, order = 0 1, streams = 0 2");
  const WholeRun some(by_run(g, "order = 1 0, streams = 3 2"), {{"B", 1}});
  CHECK(to_string(runtime::run_decision_of(some.workspace)) == "mode = streams, order = 1 0, streams = 3 2");
}

TEST_CASE("automatic becomes the mode that decisions say; another mode stays the application's",
          "[runtime][decisions][emulated]") {
  const Graph g = two_branches();
  const auto mode = [&](const std::string& told, ExecutionMode asked) {
    return by_run(g, "mode = " + told).prepare({{"B", 3}}).workspace({asked}).mode();
  };
  CHECK(mode("graph", ExecutionMode::automatic) == ExecutionMode::graph);
  CHECK(mode("streams", ExecutionMode::automatic) == ExecutionMode::streams);
  CHECK(mode("graph", ExecutionMode::streams) == ExecutionMode::streams);
  CHECK(mode("streams", ExecutionMode::graph) == ExecutionMode::graph);
}

/// Rows of x, then those of z, in one value of which the last step reads the first four.
Compiled first_rows() {
  using schedule::PlanValue;
  Graph g("first");
  const Dim B = g.dim("B", {.min = 1, .max = 100, .hint = 8});
  const Tensor x = g.input("x", f32, {B, 4}), z = g.input("z", f32, {16, 4});
  g.output("y", slice(concat({x, z}, 0), 0, 0, 4));
  Compiled c;
  c.graph = ir_of(g);
  const auto part = [](const char* name, std::vector<Dim> dims, const Dim& offset) {
    PlanValue value{PlanValue::Kind::temporary, name, f32, std::move(dims)};
    value.inside = schedule::Inside{3, offset};
    return value;
  };
  c.plan.values = {{PlanValue::Kind::input, "x", f32, {B, 4}},
                   {PlanValue::Kind::input, "z", f32, {16, 4}},
                   {PlanValue::Kind::output, "y", f32, {4, 4}},
                   {PlanValue::Kind::temporary, "whole", f32, {B + 16, 4}},
                   part("of x", {B, 4}, 0),
                   part("of z", {16, 4}, B * 16),
                   part("first", {4, 4}, 0)};
  const auto copy = [&](schedule::ValueId from, schedule::ValueId to, const char* name) {
    c.plan.steps.push_back(
        {.work = schedule::CopyStep{from, to}, .reads = {from}, .writes = {to}, .name = name});
  };
  copy(0, 4, "copy.x");
  copy(1, 5, "copy.z");
  copy(6, 2, "copy.y");
  return c;
}

TEST_CASE("an order that these dims alone forbid is an error of prepare", "[runtime][decisions][emulated]") {
  Compiled compiled = first_rows();
  compiled.run = schedule::RunDecision{.order = {0, 2, 1}, .line = 7};
  const Executable executable = runtime::make_executable(compiled, test_device());
  CHECK(dispatched(WholeRun(executable, {{"B", 4}})).starts_with("0/0 2/"));
  CHECK(error_of([&] {
          static_cast<void>(executable.prepare({{"B", 3}}));
        }) ==
        "invalid-argument: decisions: line 7: run: order has step 2 before step 1, which it depends on for "
        "these "
        "dims\n  hint: step 1 ('copy.z') comes before step 2 ('copy.y')");
}

TEST_CASE("recorded lists are of the plan as it was made, not of parts of kernels",
          "[runtime][decisions][emulated]") {
  // The device has no room for five blocks at a time. Two parts take the place of the kernel and of the step
  // that zeroes its counter: as many steps as before.
  const CustomKernel kernel = row_sums_and_total_in_parts(5);
  Graph g("sums");
  g.output("y", custom_call(kernel, {g.input("x", i32, {kernel.grid, 64})}, i32, {2 * kernel.grid}));
  const Executable executable =
      by_run(g, "order = 0 1, streams = 0 1", Device::emulated({.profile = "tiny2"}));
  REQUIRE(stages_of(executable).plan.steps.size() == 2);
  const WholeRun run(executable);
  CHECK(dispatched(run) == "0/0 1/0");
  CHECK(to_string(runtime::run_decision_of(run.workspace)) == "mode = streams");
}

}  // namespace
}  // namespace fuse::test
