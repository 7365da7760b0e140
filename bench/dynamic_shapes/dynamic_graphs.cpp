// SPDX-License-Identifier: Apache-2.0
#include "dynamic_shapes/dynamic_graphs.hpp"

#include <fuse/fuse.hpp>
#include <utility>

namespace fuse::bench {
namespace {

template <class Fill>
DynamicGraph made(const std::string& name, Fill fill) {
  Graph g("dynamic");
  fill(g);
  return {name, std::move(g)};
}

constexpr DimRange many{.min = 1, .max = 1 << 18}, long_rows{.min = 1, .max = 1 << 18};

DynamicGraph rows_of(const std::string& name, DType dtype, Tensor (*f)(const Tensor&)) {
  return made(name, [&](Graph& g) {
    const Dim m = g.dim("M", many), n = g.dim("N", long_rows);
    g.output("y", f(g.input("x", dtype, {m, n})));
  });
}

/// One layer of BERT-base: `batch` sentences of `length` tokens.
DynamicGraph bert_layer() {
  return made("BERT-base layer, B and T", [](Graph& g) {
    constexpr std::int64_t heads = 12, width = 64, hidden = heads * width;
    const Dim b = g.dim("B", {.min = 1, .max = 64}), t = g.dim("T", {.min = 1, .max = 512});
    const Dim tokens = b * t;
    const Tensor x = g.input("x", bf16, {tokens, hidden});
    const auto linear = [&](const Tensor& of, const char* name, std::int64_t in, std::int64_t out) {
      return matmul(of, g.parameter(name, bf16, {in, out}));
    };
    const auto heads_of = [&](const char* name) {
      return transpose(reshape(linear(x, name, hidden, hidden), {b, t, heads, width}), {0, 2, 1, 3});
    };
    const Tensor q = heads_of("wq"), k = heads_of("wk"), v = heads_of("wv");
    const Tensor scores = convert(matmul(q, transpose(k, {0, 1, 3, 2})), f32) * 0.125F;
    const Tensor mixed = matmul(convert(softmax(scores), bf16), v);
    const Tensor merged = reshape(transpose(mixed, {0, 2, 1, 3}), {tokens, hidden});
    const auto normed = [&](const Tensor& of, const std::string& name) {
      return layer_norm(of, g.parameter(name + ".gamma", f32, {hidden}),
                        g.parameter(name + ".beta", f32, {hidden}));
    };
    const Tensor h = normed(x + linear(merged, "wo", hidden, hidden), "ln1");
    const Tensor inner = gelu(linear(h, "w1", hidden, 4 * hidden));
    g.output("y", normed(h + linear(inner, "w2", 4 * hidden, hidden), "ln2"));
  });
}

DynamicGraph lstm_of_unknown_batch() {
  return made("LSTM of 4 steps, B", [](Graph& g) {
    constexpr std::int64_t hidden = 256;
    const Dim b = g.dim("B", {.min = 1, .max = 4096});
    const Tensor w = g.parameter("w", f32, {hidden, 4 * hidden}),
                 u = g.parameter("u", f32, {hidden, 4 * hidden});
    Tensor h = g.input("h", f32, {b, hidden}), c = g.input("c", f32, {b, hidden});
    for (int step = 0; step < 4; ++step) {
      const Tensor gates = matmul(g.input("x" + std::to_string(step), f32, {b, hidden}), w) + matmul(h, u);
      const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * hidden, (i + 1) * hidden); };
      const auto sigmoid_of = [](const Tensor& x) { return 1.0F / (1.0F + exp(-x)); };
      c = sigmoid_of(gate(1)) * c + sigmoid_of(gate(0)) * tanh(gate(2));
      h = sigmoid_of(gate(3)) * tanh(c);
    }
    g.output("h_out", h);
    g.output("c_out", c);
  });
}

}  // namespace

std::vector<DynamicGraph> dynamic_graphs() {
  std::vector<DynamicGraph> graphs;
  graphs.push_back(rows_of("softmax f32, M and N", f32, [](const Tensor& x) { return softmax(x); }));
  graphs.push_back(rows_of("softmax bf16, M and N", bf16, [](const Tensor& x) { return softmax(x); }));
  graphs.push_back(made("layer norm f32, M and N", [](Graph& g) {
    const Dim m = g.dim("M", many), n = g.dim("N", long_rows);
    g.output("y", layer_norm(g.input("x", f32, {m, n}), g.parameter("gamma", f32, {n}),
                             g.parameter("beta", f32, {n})));
  }));
  graphs.push_back(made("layer norm bf16 of 1024, M", [](Graph& g) {
    const Dim m = g.dim("M", many);
    g.output("y", layer_norm(g.input("x", bf16, {m, 1024}), g.parameter("gamma", f32, {1024}),
                             g.parameter("beta", f32, {1024})));
  }));
  graphs.push_back(rows_of("column sums f32, M and N", f32, [](const Tensor& x) { return sum(x, {0}); }));
  graphs.push_back(rows_of("gelu bf16, M and N", bf16, [](const Tensor& x) { return gelu(x); }));
  graphs.push_back(bert_layer());
  graphs.push_back(lstm_of_unknown_batch());
  return graphs;
}

}  // namespace fuse::bench
