// SPDX-License-Identifier: Apache-2.0
#include "families.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "ir/graph/ir_graph.hpp"

namespace fuse::bench {
namespace {

Tensor parameter(Graph& graph, const std::string& name, std::vector<Dim> dims) {
  return graph.parameter(name, f32, std::move(dims));
}

/// Attention of one head and a feed-forward block, each behind a norm and with a residual.
Tensor transformer_layer(Graph& graph, const Tensor& x, int layer) {
  constexpr int width = 64;
  const std::string prefix = fmt::format("layer{}.", layer);
  const auto scope = graph.scope(fmt::format("layer{}", layer));
  const auto weight = [&](const std::string& name, int rows, int columns) {
    return parameter(graph, prefix + name, {rows, columns});
  };
  const auto vector = [&](const std::string& name) { return parameter(graph, prefix + name, {width}); };
  const Tensor normed = layer_norm(x, vector("norm1.gamma"), vector("norm1.beta"));
  const Tensor q = matmul(normed, weight("q", width, width)), k = matmul(normed, weight("k", width, width)),
               v = matmul(normed, weight("v", width, width));
  const Tensor scores = softmax(matmul(q, k, {.transpose_b = true}) * 0.125, 1);
  const Tensor mixed = x + matmul(matmul(scores, v), weight("out", width, width));
  const Tensor again = layer_norm(mixed, vector("norm2.gamma"), vector("norm2.beta"));
  const Tensor hidden = gelu(matmul(again, weight("up", width, 4 * width)));
  return mixed + matmul(hidden, weight("down", 4 * width, width));
}

template <class Continue>
Graph transformer_while(const Continue& more) {
  Graph graph("transformer");
  const Dim S = graph.dim("S", {.min = 1, .max = 4096, .hint = 128});
  Tensor x = graph.input("x", f32, {S, 64});
  for (int layer = 0; more(graph, layer); ++layer) x = transformer_layer(graph, x, layer);
  graph.output("y", x);
  return graph;
}

bool shorter(const Graph& graph, std::size_t ops) { return ir_of(graph).nodes.size() < ops; }

Graph equal_layers(std::size_t ops) {
  return transformer_while([&](const Graph& graph, int) { return shorter(graph, ops); });
}

/// The width grows by one a layer.
Graph different_layers(std::size_t ops) {
  Graph graph("different");
  const Dim B = graph.dim("B", {.min = 1, .max = 4096, .hint = 128});
  Tensor x = graph.input("x", f32, {B, 16});
  for (int layer = 0; shorter(graph, ops); ++layer) {
    const auto scope = graph.scope(fmt::format("layer{}", layer));
    const int width = 16 + layer;
    const std::string prefix = fmt::format("layer{}.", layer);
    const Tensor normed = layer_norm(x, parameter(graph, prefix + "gamma", {width}),
                                     parameter(graph, prefix + "beta", {width}));
    const Tensor hidden = gelu(matmul(normed, parameter(graph, prefix + "up", {width, width})));
    x = matmul(softmax(x + hidden, 1), parameter(graph, prefix + "wider", {width, width + 1}));
  }
  graph.output("y", x);
  return graph;
}

/// Each layer reads all its predecessors at distances 1, 2, 4, 8, ...
Graph skips(std::size_t ops) {
  Graph graph("skips");
  const Dim B = graph.dim("B", {.min = 1, .max = 4096, .hint = 128});
  std::vector<Tensor> layers = {graph.input("x", f32, {B, 64})};
  while (shorter(graph, ops)) {
    const auto scope = graph.scope(fmt::format("layer{}", layers.size()));
    Tensor sum = layers.back();
    for (std::size_t back = 2; back <= layers.size(); back *= 2) sum = sum + layers[layers.size() - back];
    const Tensor centred = sum - mean(sum, {1}, {.keep_dims = true});
    layers.push_back(tanh(centred * rsqrt(mean(centred * centred, {1}, {.keep_dims = true}) + 1.0)));
  }
  graph.output("y", layers.back());
  return graph;
}

/// One value with so many users as fit, 10,000 at most; each branch is reduced and added to one sum.
Graph fan_out(std::size_t ops) {
  Graph graph("fan_out");
  const Dim B = graph.dim("B", {.min = 1, .max = 4096, .hint = 128});
  const Tensor x = exp(graph.input("x", f32, {B, 64}));
  const std::size_t users = std::clamp<std::size_t>(ops / 6, 1, 10'000);
  const std::size_t length = std::max<std::size_t>(1, ops / users - 5);
  Tensor total = sum(x, {1});
  for (std::size_t branch = 0; branch < users; ++branch) {
    Tensor y = x * (0.5 + 1e-4 * static_cast<double>(branch));
    for (std::size_t i = 0; i < length; ++i) y = i % 2 == 0 ? tanh(y) : y * y;
    total = total + sum(y, {1});
  }
  graph.output("y", total);
  return graph;
}

}  // namespace

const std::vector<Family>& families() {
  static const std::vector<Family> table = {
      {"equal", equal_layers}, {"different", different_layers}, {"skips", skips}, {"fan_out", fan_out}};
  return table;
}

Graph transformer(int layers) {
  return transformer_while([&](const Graph&, int layer) { return layer < layers; });
}

}  // namespace fuse::bench
