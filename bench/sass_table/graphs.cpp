// SPDX-License-Identifier: Apache-2.0
#include "graphs.hpp"

#include <fuse/fuse.hpp>
#include <string>

namespace fuse::bench::sass {
namespace {

using Extent = std::int64_t;

Tensor wide(const Tensor& x) { return convert(x, f32); }

/// The inputs and parameters of one graph.
struct Maker {
  Graph graph;
  DType dtype;
  Extent rows, columns;

  Maker(const char* name, DType type, Extent row_count, Extent column_count)
      : graph(name), dtype(type), rows(row_count), columns(column_count) {}

  Tensor input(const std::string& name) { return wide(graph.input(name, dtype, {rows, columns})); }
  Tensor gamma() { return graph.parameter("gamma", f32, {columns}); }
  Tensor beta() { return graph.parameter("beta", f32, {columns}); }
  Tensor bias() { return wide(graph.parameter("bias", dtype, {columns})); }
  Tensor labels() { return graph.input("label", i32, {rows}); }
  Graph with(const Tensor& y) {
    graph.output("y", convert(y, dtype));
    return std::move(graph);
  }
};

Tensor row_sum(const Tensor& x) { return sum(x, {1}, {.keep_dims = true}); }
Tensor row_mean(const Tensor& x) { return mean(x, {1}, {.keep_dims = true}); }

/// The argument of the tanh, and its derivative.
Tensor inner(const Tensor& x) { return 0.7978845608028654 * (x + 0.044715 * x * x * x); }
Tensor inner_slope(const Tensor& x) { return 0.7978845608028654 * (1 + 0.134145 * x * x); }

Graph build_bias_gelu_tanh(DType dtype, Extent rows, Extent columns) {
  Maker make("bias_gelu_tanh", dtype, rows, columns);
  const Tensor x = make.input("x") + make.bias();
  return make.with(0.5 * x * (1 + tanh(inner(x))));
}

Graph build_bias_gelu_tanh_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("bias_gelu_tanh_backward", dtype, rows, columns);
  const Tensor x = make.input("x") + make.bias();
  const Tensor t = tanh(inner(x));
  const Tensor dx = make.input("dy") * (0.5 * (1 + t) + 0.5 * x * (1 - t * t) * inner_slope(x));
  return make.with(dx);
}

Graph build_residual_rms_norm(DType dtype, Extent rows, Extent columns) {
  Maker make("residual_rms_norm", dtype, rows, columns);
  const Tensor x = make.input("x") + make.input("r");
  return make.with(rms_norm(x, make.gamma()));
}

Graph build_cross_entropy(DType dtype, Extent rows, Extent columns) {
  Maker make("cross_entropy", dtype, rows, columns);
  make.graph.output("loss", cross_entropy(make.graph.input("x", dtype, {rows, columns}), make.labels()));
  return std::move(make.graph);
}

Graph build_cross_entropy_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("cross_entropy_backward", dtype, rows, columns);
  const Tensor column = make.graph.iota(i32, {rows, columns}, 1);
  const Tensor label = broadcast_in_dim(make.labels(), {rows, columns}, {0});
  const Tensor loss = broadcast_in_dim(make.graph.input("dloss", f32, {rows}), {rows, columns}, {0});
  return make.with((softmax(make.input("x")) - convert(column == label, f32)) * loss);
}

/// Scores of attention with one head: scaled, masked by position, normalised.
Graph build_masked_softmax(DType dtype, Extent rows, Extent columns) {
  Maker make("masked_softmax", dtype, rows, columns);
  const Tensor query = make.graph.iota(i32, {rows, columns}, 0),
               key = make.graph.iota(i32, {rows, columns}, 1);
  return make.with(softmax(select(key <= query, make.input("x") * 0.125, -1e9)));
}

Graph build_masked_softmax_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("masked_softmax_backward", dtype, rows, columns);
  const Tensor query = make.graph.iota(i32, {rows, columns}, 0),
               key = make.graph.iota(i32, {rows, columns}, 1);
  const Tensor y = make.input("s"), dy = make.input("dy");
  return make.with(select(key <= query, y * (dy - row_sum(y * dy)) * 0.125, 0.0));
}

Graph build_dropout(DType dtype, Extent rows, Extent columns) {
  Maker make("dropout", dtype, rows, columns);
  const Tensor seed = make.graph.input("seed", i64, {}), offset = make.graph.input("offset", i64, {});
  make.graph.output("y", dropout(make.graph.input("x", dtype, {rows, columns}), 0.1, seed, offset));
  return std::move(make.graph);
}

Graph build_softmax_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("softmax_backward", dtype, rows, columns);
  const Tensor y = make.input("s"), dy = make.input("dy");
  return make.with(y * (dy - row_sum(y * dy)));
}

Graph build_log_softmax_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("log_softmax_backward", dtype, rows, columns);
  const Tensor y = make.input("s"), dy = make.input("dy");
  return make.with(dy - exp(y) * row_sum(dy));
}

/// What all layer norms have: dx of the normalised rows; parameters' gradients by columns.
Tensor layer_norm_dx(Maker& make, const Tensor& x, const Tensor& dy) {
  const Tensor centred = x - row_mean(x);
  const Tensor scale = rsqrt(row_mean(centred * centred) + 1e-5);
  const Tensor normal = centred * scale, d = dy * make.gamma();
  make.graph.output("dgamma", sum(dy * normal, {0}));
  make.graph.output("dbeta", sum(dy, {0}));
  return scale * (d - row_mean(d) - normal * row_mean(d * normal));
}

Tensor rms_norm_dx(Maker& make, const Tensor& x, const Tensor& dy) {
  const Tensor scale = rsqrt(row_mean(x * x) + 1e-6);
  const Tensor normal = x * scale, d = dy * make.gamma();
  make.graph.output("dgamma", sum(dy * normal, {0}));
  return scale * (d - normal * row_mean(d * normal));
}

Graph build_layer_norm_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("layer_norm_backward", dtype, rows, columns);
  const Tensor x = make.input("x"), dy = make.input("dy");
  return make.with(layer_norm_dx(make, x, dy));
}

Graph build_rms_norm_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("rms_norm_backward", dtype, rows, columns);
  const Tensor x = make.input("x"), dy = make.input("dy");
  return make.with(rms_norm_dx(make, x, dy));
}

/// x is the sum that the forward norm read; its other users give dx a gradient too.
Graph build_residual_layer_norm_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("residual_layer_norm_backward", dtype, rows, columns);
  const Tensor x = make.input("x"), dy = make.input("dy"), dx = make.input("dx");
  return make.with(dx + layer_norm_dx(make, x, dy));
}

Graph build_residual_rms_norm_backward(DType dtype, Extent rows, Extent columns) {
  Maker make("residual_rms_norm_backward", dtype, rows, columns);
  const Tensor x = make.input("x"), dy = make.input("dy"), dx = make.input("dx");
  return make.with(dx + rms_norm_dx(make, x, dy));
}

}  // namespace

const std::vector<RowGraph>& row_graphs() {
  static const std::vector<RowGraph> table = {
      {"bias_gelu_tanh", build_bias_gelu_tanh},
      {"residual_rms_norm", build_residual_rms_norm},
      {"cross_entropy", build_cross_entropy},
      {"masked_softmax", build_masked_softmax},
      {"dropout", build_dropout},
      {"softmax_backward", build_softmax_backward},
      {"log_softmax_backward", build_log_softmax_backward},
      {"cross_entropy_backward", build_cross_entropy_backward},
      {"masked_softmax_backward", build_masked_softmax_backward},
      {"layer_norm_backward", build_layer_norm_backward},
      {"rms_norm_backward", build_rms_norm_backward},
      {"residual_layer_norm_backward", build_residual_layer_norm_backward},
      {"residual_rms_norm_backward", build_residual_rms_norm_backward},
      {"bias_gelu_tanh_backward", build_bias_gelu_tanh_backward},
  };
  return table;
}

}  // namespace fuse::bench::sass
