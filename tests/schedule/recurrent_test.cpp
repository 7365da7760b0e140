// Recurrent cells: parts of one value are one use of it, and no kernel waits for a call that it does not
// need. SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"
#include "support/devices.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct State {
  Tensor h, c;
};

Tensor sigmoid(const Tensor& x) { return 1 / (1 + exp(-x)); }

/// An LSTM cell of width 32.
State lstm_cell(Graph& g, const Tensor& x, const State& before, const std::string& name) {
  const auto weights = [&](const char* part, std::int64_t rows) {
    return g.parameter(name + part, f32, {rows, 128});
  };
  const Tensor gates = matmul(x, weights("w", 16)) + matmul(before.h, weights("u", 32)) +
                       broadcast_in_dim(g.parameter(name + "b", f32, {128}), {4, 128}, {1});
  const auto gate = [&](std::int64_t i) { return slice(gates, 1, 32 * i, 32 * (i + 1)); };
  const Tensor c = sigmoid(gate(1)) * before.c + sigmoid(gate(0)) * tanh(gate(2));
  return {sigmoid(gate(3)) * tanh(c), c};
}

/// Launches of kernels in each run.
std::size_t kernels(const Compiled& made) {
  std::size_t count = 0;
  for (const schedule::Step& step : made.plan.steps)
    count += std::holds_alternative<schedule::KernelStep>(step.work) ? 1 : 0;
  return count;
}

Compiled made(const Graph& g) { return run_pipeline(ir_of(g), target_profile("h200")); }

}  // namespace

TEST_CASE("four slices of the gates are one use of them", "[partition]") {
  Graph g("cell");
  const State next =
      lstm_cell(g, g.input("x", f32, {4, 16}), {g.input("h", f32, {4, 32}), g.input("c", f32, {4, 32})}, "l");
  g.output("h_next", next.h);
  g.output("c_next", next.c);
  CHECK(kernels(made(g)) == 1);
}

TEST_CASE("slices that overlap are several uses", "[partition]") {
  Graph g("overlap");
  const Tensor both = g.input("a", f32, {64, 256}) * g.input("b", f32, {64, 256});
  const Tensor low = slice(both, 1, 0, 160), high = slice(both, 1, 96, 256);
  g.output("products", matmul(exp(low), g.parameter("w", f32, {160, 8})));
  g.output("others", matmul(tanh(high), g.parameter("v", f32, {160, 8})));
  const Compiled cut =
      run_pipeline(ir_of(g), target_profile("h200"), {.partition = {.regional = false, .horizontal = false}});
  bool stored = false;
  for (ir::NodeId id = 0; id < cut.graph.nodes.size(); ++id)
    stored = stored || (cut.graph[id].op == ir::Op::mul && cut.partition.stored[id]);
  CHECK(stored);
  Graph h("disjoint");
  const Tensor halves = h.input("a", f32, {64, 256}) * h.input("b", f32, {64, 256});
  h.output("products", matmul(exp(slice(halves, 1, 0, 128)), h.parameter("w", f32, {128, 8})));
  h.output("others", matmul(tanh(slice(halves, 1, 128, 256)), h.parameter("v", f32, {128, 8})));
  const Compiled apart =
      run_pipeline(ir_of(h), target_profile("h200"), {.partition = {.regional = false, .horizontal = false}});
  for (ir::NodeId id = 0; id < apart.graph.nodes.size(); ++id)
    CHECK_FALSE((apart.graph[id].op == ir::Op::mul && apart.partition.stored[id]));
}

TEST_CASE("two directions of a recurrent layer take one kernel per step", "[partition]") {
  constexpr int steps = 6;
  Graph g("both_ways");
  std::vector<Tensor> x, forward, backward(steps);
  for (int t = 0; t < steps; ++t) x.push_back(g.input("x" + std::to_string(t), f32, {4, 16}));
  const auto zero = [&] { return g.input("zero" + std::to_string(ir_of(g).nodes.size()), f32, {4, 32}); };
  State there{zero(), zero()}, back{zero(), zero()};
  for (int t = 0; t < steps; ++t) {
    there = lstm_cell(g, x[static_cast<std::size_t>(t)], there, "f" + std::to_string(t));
    forward.push_back(there.h);
    const auto last = static_cast<std::size_t>(steps - 1 - t);
    back = lstm_cell(g, x[last], back, "b" + std::to_string(t));
    backward[last] = back.h;
  }
  // What joins the directions at the first step must not make the forward chain wait for the backward one.
  for (std::size_t t = 0; t < steps; ++t)
    g.output("y" + std::to_string(t), concat({forward[t], backward[t]}, 1));
  const Compiled whole = made(g);
  CHECK(kernels(whole) == steps + 1);  // one stacks the inputs of all steps for one GEMM
}

TEST_CASE("slices of a value that other kernels read are read where the value is", "[partition]") {
  Graph g("weights");
  const Tensor weights = softmax(matmul(g.input("x", f32, {64, 16}), g.parameter("w", f32, {16, 12})), -1);
  Tensor state = g.input("state", f32, {64, 32});
  for (std::int64_t t = 0; t < 12; ++t) {
    const Tensor part = broadcast_to(slice(weights, 1, t, t + 1), {64, 32});
    state = tanh(matmul(state, g.parameter("u" + std::to_string(t), f32, {32, 32}))) * part + state;
  }
  g.output("y", state);
  const Compiled whole = run_pipeline(ir_of(g), target_profile("h200"), {.partition = {.regional = false}});
  for (const schedule::Segment& segment : whole.partition.segments) CHECK(segment.results.size() == 1);
}
