// The peers' side of these is bench/peers/cpu_*.py. SPDX-License-Identifier: Apache-2.0
#include "cases/cpu_graphs.hpp"

#include <cmath>

namespace fuse::bench {
namespace {

Tensor to_f32(const Tensor& x) { return convert(x, f32); }

/// y = body(x), computed in f32.
template <class F>
Graph in_f32(const char* name, DType dtype, const Extents& dims, F&& body) {
  Graph graph(name);
  const Tensor x = graph.input("x", dtype, {dims[0], dims[1]});
  graph.output("y", convert(body(to_f32(x)), dtype));
  return graph;
}

}  // namespace

Graph build_gelu(DType dtype, const Extents& dims) {
  return in_f32("gelu", dtype, dims, [](const Tensor& x) { return gelu(x); });
}

Graph build_gelu_tanh(DType dtype, const Extents& dims) {
  return in_f32("gelu_tanh", dtype, dims, [](const Tensor& x) {
    return 0.5 * x * (1 + tanh(0.7978845608028654 * (x + 0.044715 * x * x * x)));
  });
}

Graph build_nll(DType dtype, const Extents& dims) {
  Graph graph("nll");
  const Tensor x = graph.input("x", dtype, {dims[0], dims[1]});
  graph.output("y", cross_entropy(x, graph.input("labels", i64, {dims[0]})));
  return graph;
}

Graph build_dropout(DType dtype, const Extents& dims) {
  Graph graph("dropout");
  const Tensor x = graph.input("x", dtype, {dims[0], dims[1]});
  const Tensor seed = graph.input("seed", i64, {}), offset = graph.input("offset", i64, {});
  graph.output("y", dropout(x, 0.1, seed, offset));
  return graph;
}

/// One step of Adam in place, the tenth; torch's fused kernel computes the same terms.
Graph build_adam(DType dtype, const Extents& dims) {
  constexpr double rate = 1e-3, beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, step = 10;
  Graph graph("adam");
  const Tensor weights = graph.input("weights", dtype, {dims[0]});
  const Tensor first = graph.input("first_moment", dtype, {dims[0]});
  const Tensor second = graph.input("second_moment", dtype, {dims[0]});
  const Tensor gradient = to_f32(graph.input("gradient", dtype, {dims[0]}));
  const Tensor m = beta1 * to_f32(first) + (1 - beta1) * gradient;
  const Tensor v = beta2 * to_f32(second) + (1 - beta2) * gradient * gradient;
  const double size = rate / (1 - std::pow(beta1, step)), root = std::sqrt(1 - std::pow(beta2, step));
  const Tensor moved = to_f32(weights) - size * m / (sqrt(v) / root + epsilon);
  graph.output("y", convert(moved, dtype), weights);
  graph.output("first_out", convert(m, dtype), first);
  graph.output("second_out", convert(v, dtype), second);
  return graph;
}

Graph build_softmax_backward(DType dtype, const Extents& dims) {
  Graph graph("softmax_backward");
  const Tensor p = to_f32(graph.input("probabilities", dtype, {dims[0], dims[1]}));
  const Tensor dy = to_f32(graph.input("dy", dtype, {dims[0], dims[1]}));
  graph.output("y", convert(p * (dy - sum(p * dy, {1}, {.keep_dims = true})), dtype));
  return graph;
}

/// Mean and reciprocal deviation of the rows are kept from the forward pass.
Graph build_norm_backward(DType dtype, const Extents& dims) {
  Graph graph("norm_backward");
  const Tensor x = to_f32(graph.input("x", dtype, {dims[0], dims[1]}));
  const Tensor dy = to_f32(graph.input("dy", dtype, {dims[0], dims[1]}));
  const Tensor average = graph.input("mean", f32, {dims[0], 1});
  const Tensor rstd = graph.input("rstd", f32, {dims[0], 1});
  const Tensor gamma = graph.parameter("gamma", f32, {dims[1]});
  const Tensor unit = (x - average) * rstd, scaled = dy * gamma;
  const Tensor dx = rstd * (scaled - mean(scaled, {1}, {.keep_dims = true}) -
                            unit * mean(scaled * unit, {1}, {.keep_dims = true}));
  graph.output("y", convert(dx, dtype));
  graph.output("dgamma", sum(dy * unit, {0}));
  graph.output("dbeta", sum(dy, {0}));
  return graph;
}

}  // namespace fuse::bench
