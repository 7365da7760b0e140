// Memory-intensive parts of models that one kernel can compute, as AStitch's evaluation has them: the list
// that tests of stitching and the program stitch_table go through. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>
#include <vector>

namespace fuse::test {

/// Inputs and parameters are of `dtype`, outputs too; what is between is f32.
struct StitchGraph {
  const char* name;
  Graph (*build)(DType dtype, std::int64_t rows, std::int64_t columns);
};

namespace stitch {

inline Tensor wide(const Tensor& x) { return convert(x, f32); }

inline Graph softmax(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("softmax");
  g.output("y", fuse::softmax(g.input("x", dtype, {rows, columns})));
  return g;
}

inline Graph nll(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("nll");
  g.output("loss", cross_entropy(g.input("x", dtype, {rows, columns}), g.input("label", i32, {rows})));
  return g;
}

inline Graph layer_norm(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("layer_norm");
  const Tensor gamma = g.parameter("gamma", dtype, {columns}), beta = g.parameter("beta", dtype, {columns});
  g.output("y", fuse::layer_norm(g.input("x", dtype, {rows, columns}), gamma, beta));
  return g;
}

inline Graph rms_norm(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("rms_norm");
  g.output("y", fuse::rms_norm(g.input("x", dtype, {rows, columns}), g.parameter("gamma", dtype, {columns})));
  return g;
}

/// Statistics of each channel, the innermost dim.
inline Graph batch_norm(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("batch_norm");
  const Tensor x = wide(g.input("x", dtype, {rows, columns}));
  const Tensor gamma = wide(g.parameter("gamma", dtype, {columns}));
  const Tensor beta = wide(g.parameter("beta", dtype, {columns}));
  const Tensor mean = fuse::mean(x, {0});
  const Tensor centred = x - mean;
  const Tensor variance = fuse::mean(centred * centred, {0});
  g.output("y", convert(centred * rsqrt(variance + 1e-5) * gamma + beta, dtype));
  g.output("mean", mean);
  g.output("variance", variance);
  return g;
}

/// What stands between two GEMMs of a transformer layer in training.
inline Graph dropout_residual_norm(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("dropout_residual_norm");
  const Tensor x = g.input("x", dtype, {rows, columns}),
               residual = g.input("residual", dtype, {rows, columns});
  const Tensor bias = g.parameter("bias", dtype, {columns});
  const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
  const Tensor sum = dropout(gelu(wide(x) + wide(bias)), 0.1, seed, offset) + wide(residual);
  const Tensor gamma = g.parameter("gamma", f32, {columns}), beta = g.parameter("beta", f32, {columns});
  g.output("y", convert(fuse::layer_norm(sum, gamma, beta), dtype));
  g.output("sum", convert(sum, dtype));
  return g;
}

/// Scores of attention [heads, rows, columns]: scaled, masked by position, normalised.
inline Graph masked_softmax(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("masked_softmax");
  const Tensor x = wide(g.input("x", dtype, {2, rows, columns}));
  const Tensor query = g.iota(i32, {2, rows, columns}, 1), key = g.iota(i32, {2, rows, columns}, 2);
  g.output("y", convert(fuse::softmax(select(key <= query, x * 0.125, -1e9)), dtype));
  return g;
}

inline Graph softmax_backward(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("softmax_backward");
  const Tensor y = wide(g.input("y", dtype, {rows, columns})),
               dy = wide(g.input("dy", dtype, {rows, columns}));
  g.output("dx", convert(y * (dy - sum(y * dy, {1}, {.keep_dims = true})), dtype));
  return g;
}

/// dx by rows, dgamma and dbeta by columns.
inline Graph layer_norm_backward(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("layer_norm_backward");
  const Tensor x = wide(g.input("x", dtype, {rows, columns})),
               dy = wide(g.input("dy", dtype, {rows, columns}));
  const Tensor gamma = wide(g.parameter("gamma", dtype, {columns}));
  const Tensor centred = x - mean(x, {1}, {.keep_dims = true});
  const Tensor scale = rsqrt(mean(centred * centred, {1}, {.keep_dims = true}) + 1e-5);
  const Tensor normal = centred * scale, d = dy * gamma;
  g.output("dx", convert(scale * (d - mean(d, {1}, {.keep_dims = true}) -
                                  normal * mean(d * normal, {1}, {.keep_dims = true})),
                         dtype));
  g.output("dgamma", convert(sum(dy * normal, {0}), dtype));
  g.output("dbeta", convert(sum(dy, {0}), dtype));
  return g;
}

/// One step of one parameter: three results.
inline Graph adam(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("adam");
  const std::vector<Dim> dims = {rows, columns};
  const Tensor gradient = wide(g.input("gradient", dtype, dims));
  const Tensor weight = wide(g.input("weight", dtype, dims));
  const Tensor m = wide(g.input("m", dtype, dims)) * 0.9 + gradient * 0.1;
  const Tensor v = wide(g.input("v", dtype, dims)) * 0.999 + gradient * gradient * 0.001;
  const Tensor rate = g.input("rate", f32, {});
  g.output("weight_next", convert(weight - rate * m / (sqrt(v) + 1e-8), dtype));
  g.output("m_next", convert(m, dtype));
  g.output("v_next", convert(v, dtype));
  return g;
}

/// [images, pixels, groups, channels of a group], 4 groups: statistics over pixels and channels.
inline Graph group_norm(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("group_norm");
  const std::int64_t channels = (columns + 15) / 16;
  const Tensor x = wide(g.input("x", dtype, {16, rows, 4, channels}));
  const Tensor gamma = wide(g.parameter("gamma", dtype, {4, channels}));
  const Tensor beta = wide(g.parameter("beta", dtype, {4, channels}));
  const Tensor centred = x - mean(x, {1, 3}, {.keep_dims = true});
  const Tensor variance = mean(centred * centred, {1, 3}, {.keep_dims = true});
  g.output("y", convert(centred * rsqrt(variance + 1e-5) * gamma + beta, dtype));
  return g;
}

inline Graph column_softmax(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("column_softmax");
  g.output("y", fuse::softmax(g.input("x", dtype, {rows, columns}), 0));
  return g;
}

/// Gates [rows, 4 columns] as a GEMM leaves them.
inline Graph lstm_cell(DType dtype, std::int64_t rows, std::int64_t columns) {
  Graph g("lstm_cell");
  const Tensor gates = g.input("gates", dtype, {rows, 4 * columns});
  const auto gate = [&](std::int64_t i) { return wide(slice(gates, 1, i * columns, (i + 1) * columns)); };
  const auto sigmoid = [](const Tensor& x) { return 1 / (1 + exp(-x)); };
  const Tensor kept = sigmoid(gate(1)) * wide(g.input("c", dtype, {rows, columns}));
  const Tensor c = kept + sigmoid(gate(0)) * tanh(gate(2));
  g.output("c_next", convert(c, dtype));
  g.output("h_next", convert(sigmoid(gate(3)) * tanh(c), dtype));
  return g;
}

}  // namespace stitch

inline const std::vector<StitchGraph>& stitch_graphs() {
  static const std::vector<StitchGraph> list = {
      {"softmax", stitch::softmax},
      {"nll", stitch::nll},
      {"layer_norm", stitch::layer_norm},
      {"rms_norm", stitch::rms_norm},
      {"batch_norm", stitch::batch_norm},
      {"dropout_residual_norm", stitch::dropout_residual_norm},
      {"masked_softmax", stitch::masked_softmax},
      {"softmax_backward", stitch::softmax_backward},
      {"layer_norm_backward", stitch::layer_norm_backward},
      {"adam", stitch::adam},
      {"group_norm", stitch::group_norm},
      {"column_softmax", stitch::column_softmax},
      {"lstm_cell", stitch::lstm_cell},
  };
  return list;
}

}  // namespace fuse::test
