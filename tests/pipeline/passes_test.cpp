// The passes as the pipeline runs them: what one leaves, the next finds. SPDX-License-Identifier: Apache-2.0
#include <fuse/fuse.hpp>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

/// Ops of the graph after the passes, sources apart, in graph order.
std::string ops_after_passes(const Graph& g, bool relaxed = false) {
  std::string text;
  for (const ir::Node& node :
       run_pipeline(ir_of(g), target_profile("h200"), {.relaxed_rounding = relaxed}).graph.nodes) {
    if (info(node.op).has(ir::Trait::source)) continue;
    text += (text.empty() ? "" : " ") + std::string(to_string(node.op));
  }
  return text;
}

}  // namespace

TEST_CASE("the pipeline folds, then simplifies, then aligns", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {8, 4}), w = g.input("w", f32, {8, 5});
  const Tensor one = exp(g.constant(f32, 0.0)) * g.constant(f32, 1.0);
  g.output("y", matmul(transpose(x * broadcast_to(one, {8, 4}), {1, 0}), w));
  CHECK(ops_after_passes(g) == "matmul");
}

TEST_CASE("the pipeline opens a contraction and takes its transposes", "[passes]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {2, 8, 4}), w = g.input("w", f32, {2, 8, 5});
  g.output("y", contraction(transpose(x, {0, 2, 1}), w,
                            {.batch_a = {0}, .batch_b = {0}, .contract_a = {2}, .contract_b = {1}}));
  CHECK(ops_after_passes(g) == "matmul");
}

TEST_CASE("the pipeline times each stage by its name", "[passes]") {
  Graph g("g");
  g.output("y", exp(g.input("x", f32, {8, 4})));
  std::vector<std::string> stages;
  double seconds = 0;
  PipelineOptions options;
  options.timed = [&](std::string_view stage, double took) {
    stages.emplace_back(stage);
    seconds += took;
  };
  run_pipeline(ir_of(g), target_profile("h200"), options);
  std::string text;
  for (const std::string& stage : stages) text += stage + " ";
  CHECK(text ==
        "guards dead_code canonical_dims drop_broadcasts open_contractions fold_constants "
        "common_subexpressions narrow_slices simplify align_layouts sink_reshapes common_subexpressions "
        "dead_code merge_gemms split_concats facts partition equal_segments schedule lower print plan ");
  CHECK(seconds > 0);
}

TEST_CASE("relaxed rules apply by opt-in only, and the answer stays near", "[passes][device]") {
  Graph g("g");
  const Tensor x = g.input("x", f32, {64});
  g.output("y", x / 3.0);
  CHECK(ops_after_passes(g) == "div");
  CHECK(ops_after_passes(g, true) == "mul");

  HostTensor values = HostTensor::make(f32, {64});
  runtime::random_fill(values, 5, "x", -4, 4);
  for (const Device& device : test_devices()) {
    Session session(compile(g, device, {.relaxed_rounding = true}));
    session.set("x", values.data);
    session.run();
    HostTensor got = HostTensor::make(f32, {64});
    session.get("y", got.data);
    for (std::int64_t i = 0; i < 64; ++i) {
      // 1 / 3 and the product are rounded, half an ulp each.
      CHECK(std::fabs(got.get(i) - values.get(i) / 3) <= 0x1p-23 * std::fabs(values.get(i) / 3));
    }
  }
}

TEST_CASE("simplified sums of -0 and of one element run right on devices", "[passes][device]") {
  OpSweep sweep("units");
  for (const DType dtype : {f32, f64}) {
    const Tensor x = sweep.input(dtype, {12}, true);
    const Tensor row = reshape(x, {12, 1});
    sweep.expect_exact("sum", 1.0 / sum(row, {1}));  // the sign of a zero shows
    sweep.expect_exact("max", 1.0 / max(row, {1}));
    sweep.expect_exact("add", 1.0 / (x + 0.0));
    sweep.expect_exact("sub", 1.0 / (x - 0.0));
    sweep.expect_exact("neg", 1.0 / (-0.0 - x));
  }
  sweep.run_on_test_devices();
}

TEST_CASE("layouts that passes choose run right on devices", "[passes][device]") {
  OpSweep sweep("layouts");
  for (const DType dtype : {f32, bf16}) {
    const Tensor a = sweep.input(dtype, {2, 4, 3}), b = sweep.input(dtype, {2, 5, 4}),
                 c = sweep.input(dtype, {2, 3, 5});
    const auto bound = [dtype](std::size_t, double exact) {
      const double magnitude = 4 * 16;  // of a dot product of 4 terms of at most 4 * 4
      return runtime::matmul_bound(4, magnitude, exact, f32, dtype);
    };
    const Tensor at = transpose(a, {0, 2, 1}), bt = transpose(b, {0, 2, 1});
    sweep.expect("flags", matmul(at, bt), bound);
    sweep.expect("turned", transpose(matmul(at, bt), {0, 2, 1}), bound);
    sweep.expect("through", matmul(-at, bt), bound);
    sweep.expect("kept", transpose(c, {2, 0, 1}), [](std::size_t, double) { return 0.0; });
  }
  sweep.run_on_test_devices();
}

TEST_CASE("outputs that simplify to an input keep the memory they were given", "[passes][device]") {
  Graph g("swap");
  const Tensor a = g.input("a", f32, {8}), b = g.input("b", f32, {8});
  g.output("x", b * 1.0, a);
  g.output("y", -(-a), b);
  CHECK(ops_after_passes(g).empty());
  HostTensor first = HostTensor::make(f32, {8}), second = first;
  runtime::random_fill(first, 1, "a", -4, 4);
  runtime::random_fill(second, 1, "b", -4, 4);
  for (const Device& device : test_devices()) {
    Session session(compile(g, device));
    session.set("a", first.data);
    session.set("b", second.data);
    session.run();
    CHECK(session.get("x") == second.data);
    CHECK(session.get("y") == first.data);
  }
}
