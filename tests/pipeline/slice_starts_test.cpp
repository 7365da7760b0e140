// Segments that differ in where slices begin share a kernel, which gets the starts as arguments.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/runtime_support.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Compiled compiled_apart(const Graph& g) {
  PipelineOptions options;
  options.partition.stitch = false;         // a kernel for each branch
  options.partition.groups.layers = 0b011;  // which stay apart
  return run_pipeline(ir_of(g), target_profile("h200"), options);
}

/// Of all kernel steps, what they give their kernels besides buffers.
std::vector<std::vector<std::int64_t>> arguments_of(const Compiled& compiled) {
  std::vector<std::vector<std::int64_t>> all;
  for (const schedule::Step& step : compiled.plan.steps) {
    const auto* work = std::get_if<schedule::KernelStep>(&step.work);
    if (!work) continue;
    all.emplace_back();
    for (const Dim& extent : work->extents) all.back().push_back(extent.constant());
  }
  return all;
}

using Arguments = std::vector<std::vector<std::int64_t>>;

/// A branch for each start: what `make` makes of the slices of x along an axis.
template <class Make>
Graph branches(DType dtype, const std::vector<Dim>& dims, std::int64_t axis,
               const std::vector<std::int64_t>& starts, std::int64_t extent, const Make& make) {
  Graph g("branches");
  const Tensor x = g.input("x", dtype, dims);
  for (const std::int64_t start : starts)
    g.output("y" + std::to_string(start), make(slice(x, axis, start, start + extent)));
  return g;
}

Tensor sigmoid(const Tensor& x) { return 1.0 / (1.0 + exp(-x)); }

Tensor tanh_of(const Tensor& x) { return tanh(x); }

}  // namespace

TEST_CASE("branches of slices run one kernel, each with its start", "[pipeline][shared]") {
  const Compiled compiled = compiled_apart(branches(f32, {6, 40}, 0, {0, 1, 3}, 2, tanh_of));
  CHECK(compiled.kernels.size() == 1);
  CHECK(arguments_of(compiled) == Arguments{{0}, {1}, {3}});
  REQUIRE(compiled.kernels[0].extents.size() == 1);
  CHECK(compiled.kernels[0].extents[0].min() == 0);
  CHECK(compiled.kernels[0].extents[0].max() == 3);
}

TEST_CASE("an argument counts in what divides all starts, so that accesses stay wide", "[pipeline][shared]") {
  const Graph aligned = branches(f32, {4, 64}, 1, {0, 16, 48}, 16, tanh_of);
  const Compiled compiled = compiled_apart(aligned);
  CHECK(compiled.kernels.size() == 1);
  CHECK(arguments_of(compiled) == Arguments{{0}, {1}, {3}});
  const auto wide = [](const Compiled& made) {
    const std::string text = kernel::print(made.kernels[0]);
    return std::count(text.begin(), text.end(), 'x') > 0 && text.find("vector_load x_v") != std::string::npos;
  };
  const bool alone = wide(compiled_apart(branches(f32, {4, 64}, 1, {16}, 16, tanh_of)));
  CHECK(wide(compiled) == alone);
}

TEST_CASE("starts that allow accesses of other widths have kernels of their own", "[pipeline][shared]") {
  const auto kernels = [](const std::vector<std::int64_t>& starts) {
    return compiled_apart(branches(f32, {4096, 64}, 1, starts, 16, tanh_of)).kernels.size();
  };
  CHECK(kernels({0, 16}) == 1);
  CHECK(kernels({4, 12}) == 1);
  CHECK(kernels({0, 4}) == 2);
  CHECK(kernels({1, 3}) == 1);
  CHECK(kernels({0, 4, 12, 5}) == 3);
}

TEST_CASE("starts of other dims than the innermost share a kernel, whatever divides them",
          "[pipeline][shared]") {
  Graph g("rows");
  const Dim B = g.dim("B", {.min = 1, .max = 64});
  const Tensor x = g.input("x", f32, {64, B}), z = g.input("z", f32, {64, 21, 1});
  for (const std::int64_t start : {0, 1, 2, 8}) {
    g.output("y" + std::to_string(start), tanh(slice(x, 0, start, start + 16)));
    g.output("w" + std::to_string(start), tanh(slice(z, 0, start, start + 16)));
  }
  CHECK(compiled_apart(g).kernels.size() == 2);
  // Behind it are only dims of one: they lie side by side.
  CHECK(compiled_apart(branches(f32, {4096, 64, 1}, 1, {0, 4}, 16, tanh_of)).kernels.size() == 2);
}

TEST_CASE("an argument is no dim of the graph, whatever that is called", "[pipeline][shared][device]") {
  OpSweep sweep("names");
  const Dim length = sweep.graph().dim("slice.0", {.min = 1, .max = 40, .hint = 5});
  const Tensor x = sweep.input(f32, {6, 8}), u = sweep.input(f32, {8, 8});
  Tensor h = sweep.input(f32, {5, 8}, {length, 8});
  for (const std::int64_t t : {0, 3, 5}) {
    h = tanh(matmul(h, u) + reshape(slice(x, 0, t, t + 1), {8}));
    sweep.expect("step " + std::to_string(t), h,
                 [](std::size_t, double exact) { return 1e-5 + 1e-5 * std::abs(exact); });
  }
  sweep.run_on_test_devices({{"slice.0", 5}});
}

TEST_CASE("starts that are equal in each segment share an argument, and those of all segments stay numbers",
          "[pipeline][shared]") {
  Graph g("pairs");
  const Tensor x = g.input("x", f32, {8, 3, 32}), y = g.input("y", f32, {8, 32});
  for (const std::int64_t t : {2, 4, 6}) {
    const Tensor a = reshape(slice(slice(x, 0, t, t + 1), 1, 1, 2), {32});
    g.output("y" + std::to_string(t),
             a * reshape(slice(y, 0, t, t + 1), {32}) + reshape(slice(y, 0, t + 1, t + 2), {32}));
  }
  const Compiled compiled = compiled_apart(g);
  CHECK(compiled.kernels.size() == 1);
  const Arguments arguments = arguments_of(compiled);
  REQUIRE(arguments.size() == 3);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const auto n = static_cast<std::int64_t>(i);
    CHECK(std::set(arguments[i].begin(), arguments[i].end()) == std::set<std::int64_t>{n + 1, 2 * n + 3});
    CHECK(arguments[i].size() == 2);
  }
}

TEST_CASE("where a start is more than an address, it stays a number", "[pipeline][shared]") {
  const auto kernels = [](const auto& make) {
    Graph g("computed");
    const Tensor x = g.input("x", f32, {8, 40});
    for (const std::int64_t start : {1, 3}) g.output("y" + std::to_string(start), make(x, start));
    return compiled_apart(g).kernels.size();
  };
  CHECK(kernels([](const Tensor& x, std::int64_t start) {
          return tanh(slice(reverse(x, {0}), 0, start, start + 4));
        }) == 2);
  CHECK(kernels([](const Tensor& x, std::int64_t start) {
          return tanh(slice(reshape(x, {40, 8}), 0, start, start + 5));
        }) == 1);
}

TEST_CASE("a shared kernel says where its slices begin", "[pipeline][shared]") {
  const Compiled compiled = compiled_apart(branches(f32, {4, 64}, 1, {0, 16}, 16, tanh_of));
  const std::string text = schedule::print(compiled.graph, compiled.schedules[1]);
  INFO(text);
  CHECK(text.find("starts %") != std::string::npos);
  CHECK(text.find("slice: dim 1 at 16 * slice.0, an argument") != std::string::npos);
  REQUIRE(compiled.schedules[1].starts.size() == 1);
  // It is a slice of the segment itself.
  const std::vector<ir::NodeId>& nodes = compiled.schedules[1].segment.nodes;
  CHECK(std::count(nodes.begin(), nodes.end(), compiled.schedules[1].starts[0].node) == 1);
}

TEST_CASE("steps of an unrolled recurrence have the kernels of two", "[pipeline][shared][device]") {
  const auto kernels = [](std::int64_t steps) {
    OpSweep sweep("recurrence");
    const Dim B = sweep.graph().dim("B", {.min = 1, .max = 64});
    const Tensor x = sweep.input(f32, {steps, 5, 96}, {steps, B, 96}), u = sweep.input(f32, {32, 96});
    Tensor h = sweep.input(f32, {5, 32}, {B, 32});
    for (std::int64_t t = 0; t < steps; ++t) {
      const Tensor gates = reshape(slice(x, 0, t, t + 1), {B, 96}) + matmul(h, u);
      const Tensor reset = sigmoid(slice(gates, 1, 0, 32)), update = sigmoid(slice(gates, 1, 32, 64));
      h = layer_norm(update * h + (1.0 - update) * tanh(reset * slice(gates, 1, 64, 96)),
                     sweep.graph().constant(f32, 1, {32}), sweep.graph().constant(f32, 0, {32}));
      sweep.expect("step " + std::to_string(t), h,
                   [](std::size_t, double exact) { return 1e-3 + 1e-3 * std::abs(exact); });
    }
    if (steps > 2) sweep.run_on_test_devices({{"B", 5}});
    return run_pipeline(ir_of(sweep.built()), target_profile("h200")).kernels.size();
  };
  CHECK(kernels(6) == kernels(2));
}

TEST_CASE("rows, columns, scans and tiles take their slices from arguments", "[pipeline][shared][device]") {
  OpSweep sweep("forms");
  const Tensor x = sweep.input(f32, {5, 40, 48}), u = sweep.input(f32, {48, 48});
  const auto bound = [](std::size_t, double exact) { return 1e-3 + 1e-3 * std::abs(exact); };
  Tensor h = sweep.input(f32, {40, 48});
  for (const std::int64_t t : {0, 2, 4}) {
    const std::string n = " " + std::to_string(t);
    const Tensor part = reshape(slice(x, 0, t, t + 1), {40, 48});
    h = softmax(part + matmul(h, u), 1);
    sweep.expect("rows" + n, h, bound);
    const Tensor product = matmul(h, u);
    sweep.expect("columns" + n, sum(part * product, {0}), bound);
    sweep.expect("scan" + n, cumulative_sum(part + product, 1), bound);
    sweep.expect("tile" + n, transpose(part + product, {1, 0}), bound);
  }
  sweep.run_on_test_devices({});
}
