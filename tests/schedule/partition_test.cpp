// How graphs are cut: tests/golden/partition/*.txt show the graph and its segments.
// SPDX-License-Identifier: Apache-2.0
#include "base/access.hpp"
#include "schedule/schedule_support.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

TEST_CASE("partition of softmax", "[partition]") {
  Graph g("softmax");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 20, .hint = 1024});
  g.output("y", softmax(g.input("x", f32, {B, 1024})));
  check_golden("partition/softmax.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of layer norm in bf16", "[partition]") {
  Graph g("layer_norm");
  const Dim B = g.dim("B", {.min = 1, .max = 1 << 20, .hint = 4096});
  const Tensor x = g.input("x", bf16, {B, 768});
  const Tensor gamma = g.parameter("gamma", f32, {768}), beta = g.parameter("beta", f32, {768});
  g.output("y", layer_norm(x, gamma, beta));
  check_golden("partition/layer_norm.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of a residual block whose sum several segments use", "[partition]") {
  Graph g("residual");
  const Tensor x = g.input("x", f32, {64, 256}), delta = g.input("delta", f32, {64, 256});
  const Tensor bias = g.parameter("bias", f32, {256}), gamma = g.parameter("gamma", f32, {256});
  const Tensor sum = x + delta;  // two large tensors: stored once rather than read thrice
  g.output("norm", rms_norm(sum, gamma));
  g.output("next", tanh(sum) + bias);
  check_golden("partition/residual.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of a value that is cheap to compute again", "[partition]") {
  Graph g("cheap");
  const Tensor x = g.input("x", f32, {64, 256});
  const Tensor twice = x * 2;  // one large tensor: computed in both segments
  g.output("rows", sum(twice, {1}));
  g.output("all", exp(twice));
  check_golden("partition/cheap.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of a gelu MLP around its matmuls", "[partition]") {
  Graph g("mlp");
  const Dim B = g.dim("B", {.min = 1, .max = 4096, .hint = 128});
  const Tensor x = g.input("x", bf16, {B, 64});
  const Tensor up = g.parameter("up", bf16, {64, 256}), up_bias = g.parameter("up.bias", bf16, {256});
  const Tensor down = g.parameter("down", bf16, {256, 64}), down_bias = g.parameter("down.bias", bf16, {64});
  g.output("y", x + linear(gelu(linear(x, up, up_bias)), down, down_bias));
  check_golden("partition/mlp.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of reshapes next to matmuls: views of stored values", "[partition]") {
  Graph g("views");
  const Dim B = g.dim("B", {.min = 1, .max = 1024, .hint = 16});
  const Tensor x = g.input("x", f32, {B, 4, 8}), w = g.parameter("w", f32, {8, 6});
  const Tensor v = g.parameter("v", f32, {6, 4, 5});
  const Tensor flat = matmul(reshape(x, {4 * B, 8}), w);  // of an input
  const Tensor heads = reshape(flat, {B, 4, 6});          // of a matmul's result
  const Tensor inner = reshape(exp(heads), {B, 24});      // of a computed value: its operand is stored
  g.output("y", matmul(inner, reshape(v, {24, 5})));
  g.output("heads", heads);
  g.output("turned", reshape(transpose(heads, {1, 0, 2}), {4, 6 * B}));  // moves elements, then a view
  check_golden("partition/views.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of outputs that are inputs, and of one value that is two outputs", "[partition]") {
  Graph g("aliases");
  const Tensor x = g.input("x", f32, {4, 6}), w = g.parameter("w", f32, {6});
  const Tensor y = x + w;
  g.output("x again", x);
  g.output("w as a column", reshape(w, {6, 1}));
  g.output("y", y);
  g.output("y again", y);
  g.output("y flat", reshape(y, {24}));
  check_golden("partition/aliases.txt", partition_text(prepared(g)));
}

TEST_CASE("partition of graphs without a single op, and of sources alone", "[partition]") {
  Graph g("nothing");
  g.output("x", g.input("x", f32, {4}));
  CHECK(schedule::partition(ir_of(g)).segments.empty());
  Graph sources("sources");
  const Dim B = sources.dim("B", {.min = 0, .max = 8});
  sources.output("one", sources.constant(f32, 1, {B}));
  sources.output("size", sources.dim_size(2 * B + 1));
  sources.output("row", sources.iota(i64, {B, 3}, 1));
  check_golden("partition/sources.txt", partition_text(prepared(sources)));
}

TEST_CASE("partition text is the same every time", "[partition]") {
  const auto text = [] {
    Graph g("again");
    const Tensor x = g.input("x", f32, {8, 16}), w = g.parameter("w", f32, {16, 16});
    g.output("y", softmax(matmul(gelu(x), w)) + x);
    return partition_text(prepared(g));
  };
  CHECK(text() == text());
}
