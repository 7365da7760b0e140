// Models for the cpu device beside its peers. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "cases/cpu_graphs.hpp"

namespace fuse::bench {
namespace {

/// Parameters by name, as transformer_inputs of bench/peers/harness.py lists them for each layer.
struct CpuModel {
  Graph& graph;
  DType dtype;

  Tensor dense(const Tensor& x, const std::string& name, std::int64_t in, std::int64_t out) const {
    const Tensor weight = graph.parameter(name + ".weight", dtype, {in, out});
    return linear(x, weight, graph.parameter(name + ".bias", dtype, {out}));
  }
  Tensor norm(const Tensor& x, const std::string& name, std::int64_t width) const {
    const Tensor gamma = graph.parameter(name + ".gamma", f32, {width});
    return layer_norm(x, gamma, graph.parameter(name + ".beta", f32, {width}));
  }
};

/// Queries, keys and values of [batch, length, 3 hidden], each [batch, heads, length, width].
std::array<Tensor, 3> heads_of(const Tensor& qkv, const Dim& batch, const Dim& length, std::int64_t heads,
                               std::int64_t width) {
  const Tensor apart = reshape(qkv, {batch, length, 3, heads, width});
  std::array<Tensor, 3> parts;
  for (std::int64_t i = 0; i < 3; ++i) {
    const Tensor part = reshape(slice(apart, 2, i, i + 1), {batch, length, heads, width});
    parts[static_cast<std::size_t>(i)] = transpose(part, {0, 2, 1, 3});
  }
  return parts;
}

Tensor logistic(const Tensor& x) { return reciprocal(1 + exp(-x)); }

}  // namespace

/// Layers of BERT without embeddings and masks: [batch, length, hidden, heads, layers]. Length 0 is the
/// symbol L.
Graph build_encoder(DType dtype, const Extents& dims) {
  Graph graph("encoder");
  const CpuModel model{graph, dtype};
  const std::int64_t batch = dims[0], hidden = dims[2], heads = dims[3], width = hidden / heads;
  const Dim length = dims[1] > 0 ? Dim(dims[1]) : graph.dim("L", {.min = 1, .max = 512, .hint = 128});
  Tensor x = graph.input("x", dtype, {batch, length, hidden});
  for (std::int64_t i = 0; i < dims[4]; ++i) {
    const auto scope = graph.scope(fmt::format("layer.{}", i));
    const std::string name = fmt::format("{}.", i);
    const auto [q, k, v] =
        heads_of(model.dense(x, name + "qkv", hidden, 3 * hidden), batch, length, heads, width);
    const Tensor mixed = reshape(transpose(attention(q, k, v), {0, 2, 1, 3}), {batch, length, hidden});
    x = model.norm(x + model.dense(mixed, name + "out", hidden, hidden), name + "norm1", hidden);
    const Tensor wide = gelu(model.dense(x, name + "up", hidden, 4 * hidden));
    x = model.norm(x + model.dense(wide, name + "down", 4 * hidden, hidden), name + "norm2", hidden);
  }
  graph.output("y", x);
  return graph;
}

/// One token for each sequence, pre-norm layers: [batch, length, hidden, heads, layers]. The caches of keys
/// and values are full but for the last place, which the step writes in place.
Graph build_decode_step(DType dtype, const Extents& dims) {
  Graph graph("decode_step");
  const CpuModel model{graph, dtype};
  const std::int64_t batch = dims[0], length = dims[1], hidden = dims[2], heads = dims[3];
  const std::int64_t width = hidden / heads;
  Tensor x = graph.input("x", dtype, {batch, hidden});
  struct Cache {
    std::string name;
    Tensor before, after;
  };
  std::vector<Cache> caches;
  for (std::int64_t i = 0; i < dims[4]; ++i) {
    const auto scope = graph.scope(fmt::format("layer.{}", i));
    const std::string name = fmt::format("{}.", i);
    const Tensor qkv = model.dense(model.norm(x, name + "norm1", hidden), name + "qkv", hidden, 3 * hidden);
    auto [q, k, v] = heads_of(reshape(qkv, {batch, 1, 3 * hidden}), batch, 1, heads, width);
    const auto cached = [&](const char* what, const Tensor& update) {
      const Tensor before = graph.input(name + what, dtype, {batch, heads, length, width});
      caches.push_back(
          {name + what + "_out", before, dynamic_update_slice(before, update, {0, 0, length - 1, 0})});
      return caches.back().after;
    };
    const Tensor keys = cached("keys", k), values = cached("values", v);
    const Tensor mixed = reshape(transpose(attention(q, keys, values), {0, 2, 1, 3}), {batch, hidden});
    x = x + model.dense(mixed, name + "out", hidden, hidden);
    const Tensor wide =
        gelu(model.dense(model.norm(x, name + "norm2", hidden), name + "up", hidden, 4 * hidden));
    x = x + model.dense(wide, name + "down", 4 * hidden, hidden);
  }
  graph.output("y", x);
  for (const Cache& cache : caches) graph.output(cache.name, cache.after, cache.before);
  return graph;
}

/// [steps, batch, width]: one layer, unrolled, from a state of zeros; y has the hidden state of each step.
Graph build_lstm(DType dtype, const Extents& dims) {
  Graph graph("lstm");
  const std::int64_t steps = dims[0], batch = dims[1], width = dims[2];
  const Tensor x = graph.input("x", dtype, {steps, batch, width});
  const Tensor into = graph.parameter("input.weight", dtype, {width, 4 * width});
  const Tensor back = graph.parameter("hidden.weight", dtype, {width, 4 * width});
  const Tensor all = linear(x, into, graph.parameter("bias", dtype, {4 * width}));
  std::optional<Tensor> hidden, cell;
  std::vector<Tensor> states;
  for (std::int64_t t = 0; t < steps; ++t) {
    Tensor gates = reshape(slice(all, 0, t, t + 1), {batch, 4 * width});
    if (hidden) gates = gates + matmul(*hidden, back);
    const auto gate = [&](std::int64_t i) { return slice(gates, 1, i * width, (i + 1) * width); };
    const Tensor fresh = logistic(gate(0)) * tanh(gate(2));
    cell = cell ? logistic(gate(1)) * *cell + fresh : fresh;
    hidden = logistic(gate(3)) * tanh(*cell);
    states.push_back(reshape(*hidden, {1, batch, width}));
  }
  graph.output("y", concat(states, 0));
  return graph;
}

}  // namespace fuse::bench
