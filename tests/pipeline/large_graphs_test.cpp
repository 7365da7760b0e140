// Graphs that are large in one way: planned within bounds that are counted, not timed.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "runtime/execute/executable_impl.hpp"
#include "support/op_sweep.hpp"
#include "support/sanitized.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

struct Size {
  std::size_t ops = 0;  ///< of the graph after the passes
  std::size_t segments = 0, kernels = 0, steps = 0;
  std::size_t segment_ops = 0;      ///< of all segments: what is computed twice counts twice
  std::size_t largest_segment = 0;  ///< ops
  std::size_t largest_kernel = 0;   ///< bytes of text
  std::size_t most_parameters = 0;  ///< of a kernel
};

/// The pipeline checks every stage on its way.
Size planned(const Graph& g) {
  const Compiled compiled = run_pipeline(ir_of(g), target_profile("h200"));
  Size size{.ops = compiled.graph.nodes.size(),
            .segments = compiled.partition.segments.size(),
            .kernels = compiled.source.kernels.size(),
            .steps = compiled.plan.steps.size()};
  for (const schedule::Segment& segment : compiled.partition.segments) {
    size.segment_ops += segment.nodes.size();
    size.largest_segment = std::max(size.largest_segment, segment.nodes.size());
  }
  for (std::size_t i = 0; i < size.kernels; ++i) {
    const std::size_t end =
        i + 1 < size.kernels ? compiled.source.starts[i + 1] : compiled.source.body.size();
    size.largest_kernel = std::max(size.largest_kernel, end - compiled.source.starts[i]);
    size.most_parameters = std::max(size.most_parameters, compiled.source.kernels[i].params.size());
  }
  INFO(ir_of(g).name << ": " << size.ops << " ops, " << size.segments << " segments with " << size.segment_ops
                     << " ops, the largest " << size.largest_segment << "; " << size.kernels
                     << " kernels, the largest " << size.largest_kernel << " bytes and "
                     << size.most_parameters << " parameters; " << size.steps << " steps");
  CHECK(size.most_parameters <= static_cast<std::size_t>(runtime::max_arguments));
  CHECK(size.largest_kernel < 200'000);
  CHECK(size.segment_ops <= 4 * size.ops);
  CHECK(size.kernels <= 2 * size.segments);
  return size;
}

}  // namespace

TEST_CASE("a 10,000-way concat of equal parts needs a kernel a level", "[pipeline][large]") {
  Graph g("concat");
  std::vector<Tensor> parts;
  for (int i = 0; i < 10'000; ++i) parts.push_back(g.input("x" + std::to_string(i), f32, {8}));
  g.output("y", concat(parts, 0));
  const Size size = planned(g);
  CHECK(size.steps < 1'000);
  CHECK(size.kernels < 20);
}

TEST_CASE("fan-out of 10,000", "[pipeline][large]") {
  Graph g("fan_out");
  const Tensor x = g.input("x", f32, {64});
  const Tensor shared = exp(x) + tanh(x);
  const unsigned users = fewer(10'000u);
  for (unsigned i = 0; i < users; ++i) {
    g.output("y" + std::to_string(i), shared * (1.0 + 1e-3 * i));
  }
  const Size size = planned(g);
  CHECK(size.steps <= users / 20 + 1);
}

TEST_CASE("equal users of one value are one value, and the rest copies", "[pipeline][large]") {
  const int outputs = fewer(10'000);
  Graph g("equal_users");
  const Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < outputs; ++i) g.output("y" + std::to_string(i), exp(x) * g.constant(f32, 2));
  const Size size = planned(g);
  CHECK(size.kernels == 1);
  CHECK(size.steps == static_cast<std::size_t>(outputs));
}

TEST_CASE("5,000 inputs", "[pipeline][large]") {
  Graph g("inputs");
  Tensor total = g.input("x", f32, {64});
  for (int i = 0; i < 5'000; ++i) total = total + g.input("x" + std::to_string(i), f32, {64});
  g.output("y", total);
  const Size size = planned(g);
  CHECK(size.segments >= 100);
  CHECK(size.segments <= 500);
  CHECK(size.kernels <= 4);  // the segments between the first and the last are equal
}

TEST_CASE("depth of 100,000", "[pipeline][large][not-sanitized]") {
  Graph g("depth");
  Tensor x = g.input("x", f32, {64});
  for (int i = 0; i < fewer(100'000); ++i) x = tanh(x);
  g.output("y", x);
  const Size size = planned(g);
  CHECK(size.segments >= fewer(500u));
  CHECK(size.kernels <= 3);
  CHECK(size.segment_ops <= size.ops);
}

TEST_CASE("zero-sized tensors are planned, shared and run", "[pipeline][large][device]") {
  OpSweep sweep("empty");
  const Dim B = sweep.graph().dim("B", {.min = 0, .max = 64});
  for (int i = 0; i < 2; ++i) {
    const Tensor x = sweep.input(f32, {0, 8}, {B, 8}), y = sweep.input(f32, {3, 0});
    sweep.expect_exact("empty rows", x * 2.0);
    sweep.expect_exact("sum over nothing", sum(y, {1}));
    sweep.expect_exact("largest of nothing", max(y, {1}));
    sweep.expect_exact("empty product", matmul(y, sweep.input(f32, {0, 5})));
    sweep.expect_exact("with nothing", concat({y, y}, 1));
  }
  const Size size = planned(sweep.built());
  CHECK(size.kernels < size.steps);
  sweep.run_on_test_devices({{"B", 0}});
}

TEST_CASE("a wide concat and its equal segments give the right values", "[pipeline][large][device]") {
  OpSweep sweep("wide");
  std::vector<Tensor> parts;
  for (int i = 0; i < 300; ++i) parts.push_back(sweep.input(f32, {i == 150 ? 5 : 3}));
  sweep.expect_exact("concat of 300", concat(parts, 0));
  Tensor total = parts[0];
  for (int i = 1; i < 150; ++i) total = total + parts[static_cast<std::size_t>(i)];
  sweep.expect("sum of 150 inputs", total,
               [](std::size_t, double exact) { return 1e-3 + 1e-5 * std::abs(exact); });
  sweep.run_on_test_devices();
}
