// What all models here are made of: parameters, dense layers, norms, steps in time.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/fuse.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

namespace example {

/// Adds the parameters of a model to its graph, and the layers that need nothing else. A layer names its
/// parameters after itself, as in "encoder.0.norm.gamma". Layers of one name share them: the steps of an
/// unrolled decoder do.
class Layers {
 public:
  Layers(fuse::Graph& graph, fuse::DType dtype) : graph_(graph), dtype_(dtype) {}

  fuse::Graph& graph() { return graph_; }
  fuse::DType dtype() const { return dtype_; }

  fuse::Tensor weight(const std::string& name, std::vector<fuse::Dim> dims) {
    return parameter(name, dtype_, std::move(dims));
  }

  fuse::Tensor filled(double value, std::vector<fuse::Dim> dims) {
    return graph_.constant(dtype_, value, std::move(dims));
  }

  fuse::Tensor dense(const fuse::Tensor& x, const std::string& name, std::int64_t out) {
    // Named one by one: the order in which a call evaluates its arguments is the compiler's.
    const fuse::Tensor weights = weight(name + ".weight", {x.dim(-1), out});
    const fuse::Tensor bias = weight(name + ".bias", {out});
    return fuse::linear(x, weights, bias);
  }

  /// A dense layer over parts that would stand side by side: a GEMM for each, and no copy puts them together.
  fuse::Tensor dense(const std::vector<fuse::Tensor>& parts, const std::string& name, std::int64_t out) {
    const fuse::Tensor products = dense_without_bias(parts, name, out);
    return products + weight(name + ".bias", {out});
  }

  fuse::Tensor dense_without_bias(const fuse::Tensor& x, const std::string& name, std::int64_t out) {
    return fuse::linear(x, weight(name + ".weight", {x.dim(-1), out}));
  }

  fuse::Tensor dense_without_bias(const std::vector<fuse::Tensor>& parts, const std::string& name,
                                  std::int64_t out) {
    fuse::Dim in = 0, row = 0;
    for (const fuse::Tensor& part : parts) in = in + part.dim(-1);
    const fuse::Tensor weights = weight(name + ".weight", {in, out});
    fuse::Tensor total;
    for (const fuse::Tensor& part : parts) {
      const fuse::Tensor rows = fuse::slice(weights, 0, row, row + part.dim(-1));
      const fuse::Tensor product = fuse::linear(part, rows);
      total = total.valid() ? product + total : product;
      row = row + part.dim(-1);
    }
    return total;
  }

  /// A layer norm over the last dim.
  fuse::Tensor norm(const fuse::Tensor& x, const std::string& name) {
    // Scale and shift stay in f32 whatever the model's type.
    const fuse::Tensor gamma = parameter(name + ".gamma", fuse::f32, {x.dim(-1)});
    const fuse::Tensor beta = parameter(name + ".beta", fuse::f32, {x.dim(-1)});
    return fuse::layer_norm(x, gamma, beta, 1e-6);
  }

  /// A batch norm at inference: mean, variance, gamma and beta of training are one factor and one term.
  fuse::Tensor batch_norm(const fuse::Tensor& x, const std::string& name) {
    const fuse::Tensor scale = weight(name + ".scale", {x.dim(-1)});
    const fuse::Tensor shift = weight(name + ".shift", {x.dim(-1)});
    return x * scale + shift;
  }

 private:
  fuse::Tensor parameter(const std::string& name, fuse::DType dtype, std::vector<fuse::Dim> dims) {
    fuse::Tensor& made = parameters_[name];
    if (!made.valid()) made = graph_.parameter(name, dtype, std::move(dims));
    return made;
  }

  fuse::Graph& graph_;
  const fuse::DType dtype_;
  std::map<std::string, fuse::Tensor> parameters_;
};

inline fuse::Tensor relu(const fuse::Tensor& x) { return fuse::maximum(x, 0); }
inline fuse::Tensor sigmoid(const fuse::Tensor& x) { return fuse::reciprocal(1 + fuse::exp(-x)); }

/// Element `index` of an axis, which goes away.
inline fuse::Tensor at(const fuse::Tensor& x, std::int64_t axis, std::int64_t index) {
  std::vector<fuse::Dim> dims = x.dims();
  dims.erase(dims.begin() + axis);
  return fuse::reshape(fuse::slice(x, axis, index, index + 1), dims);
}

}  // namespace example
