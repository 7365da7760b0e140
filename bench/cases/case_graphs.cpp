// The builders of bench/cases.json; bench/peers has the same in Python. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <array>
#include <fuse/fuse.hpp>
#include <stdexcept>
#include <string>
#include <utility>

#include "cases/cases.hpp"
#include "cases/cpu_graphs.hpp"

namespace fuse::bench {
namespace {

/// A graph of x [rows, columns] and what `body` makes of it.
template <class F>
Graph of_rows(const char* name, DType dtype, const Extents& dims, F&& body) {
  Graph graph(name);
  const Tensor x = graph.input("x", dtype, {dims[0], dims[1]});
  graph.output("y", body(graph, x));
  return graph;
}

Tensor norm(Graph& graph, const Tensor& x, const std::string& name, std::int64_t width) {
  return layer_norm(x, graph.parameter(name + "gamma", f32, {width}),
                    graph.parameter(name + "beta", f32, {width}));
}

Graph build_softmax(DType dtype, const Extents& dims) {
  return of_rows("softmax", dtype, dims, [](Graph&, const Tensor& x) { return softmax(x); });
}
Graph build_log_softmax(DType dtype, const Extents& dims) {
  return of_rows("log_softmax", dtype, dims, [](Graph&, const Tensor& x) { return log_softmax(x); });
}
Graph build_layer_norm(DType dtype, const Extents& dims) {
  return of_rows("layer_norm", dtype, dims,
                 [&](Graph& g, const Tensor& x) { return norm(g, x, "", dims[1]); });
}
Graph build_rms_norm(DType dtype, const Extents& dims) {
  return of_rows("rms_norm", dtype, dims, [&](Graph& g, const Tensor& x) {
    return rms_norm(x, g.parameter("gamma", f32, {dims[1]}));
  });
}
Graph build_row_sum(DType dtype, const Extents& dims) {
  return of_rows("row_sum", dtype, dims, [](Graph&, const Tensor& x) { return sum(x, {1}); });
}
Graph build_column_sum(DType dtype, const Extents& dims) {
  return of_rows("column_sum", dtype, dims, [](Graph&, const Tensor& x) { return sum(x, {0}); });
}
Graph build_transpose(DType dtype, const Extents& dims) {
  return of_rows("transpose", dtype, dims, [](Graph&, const Tensor& x) { return transpose(x, {1, 0}); });
}
Graph build_bias_gelu(DType dtype, const Extents& dims) {
  return of_rows("bias_gelu", dtype, dims,
                 [&](Graph& g, const Tensor& x) { return gelu(x + g.parameter("bias", dtype, {dims[1]})); });
}

Graph build_elementwise(DType dtype, const Extents& dims) {
  Graph graph("elementwise");
  Tensor x = graph.input("x", dtype, {dims[0]});
  const Tensor b = graph.input("b", dtype, {dims[0]});
  for (std::int64_t i = 0; i < dims[1]; ++i) x = maximum(x * 0.7978 + b, 0) * 0.5 + x;
  graph.output("y", x);
  return graph;
}

Graph build_residual_layer_norm(DType dtype, const Extents& dims) {
  Graph graph("residual_layer_norm");
  Tensor x = graph.input("x", dtype, {dims[0], dims[1]});
  for (std::int64_t i = 0; i < dims[2]; ++i) {
    const Tensor r = graph.input(fmt::format("r{}", i), dtype, {dims[0], dims[1]});
    x = norm(graph, x + r, fmt::format("{}.", i), dims[1]);
  }
  graph.output("y", x);
  return graph;
}

Graph build_matmul_bias_gelu(DType dtype, const Extents& dims) {
  Graph graph("matmul_bias_gelu");
  const Tensor a = graph.input("a", dtype, {dims[0], dims[2]});
  const Tensor b = graph.parameter("b", dtype, {dims[2], dims[1]});
  graph.output("y", gelu(matmul(a, b) + graph.parameter("bias", dtype, {dims[1]})));
  return graph;
}

/// The layers of a transformer: [batch, length, hidden, heads, layers].
class Transformer {
 public:
  Transformer(DType dtype, const Extents& dims)
      : dtype_(dtype),
        batch_(dims[0]),
        length_(dims[1]),
        hidden_(dims[2]),
        heads_(dims[3]),
        layers_(dims[4]) {}

  Graph build() {
    Tensor x = graph_.input("x", dtype_, {batch_, length_, hidden_});
    for (std::int64_t i = 0; i < layers_; ++i) x = layer(x, fmt::format("{}.", i));
    graph_.output("y", x);
    return std::move(graph_);
  }

 private:
  Tensor dense(const Tensor& x, const std::string& name, std::int64_t in, std::int64_t out) {
    return linear(x, graph_.parameter(name + ".weight", dtype_, {in, out}),
                  graph_.parameter(name + ".bias", dtype_, {out}));
  }

  Tensor attend(const Tensor& x, const std::string& name) {
    const std::int64_t width = hidden_ / heads_;
    const Tensor qkv =
        reshape(dense(x, name + "qkv", hidden_, 3 * hidden_), {batch_, length_, 3, heads_, width});
    std::array<Tensor, 3> parts;
    for (std::int64_t i = 0; i < 3; ++i) {
      const Tensor part = reshape(slice(qkv, 2, i, i + 1), {batch_, length_, heads_, width});
      parts[static_cast<std::size_t>(i)] = transpose(part, {0, 2, 1, 3});
    }
    const Tensor mixed = attention(parts[0], parts[1], parts[2], {.causal = true});
    return dense(reshape(transpose(mixed, {0, 2, 1, 3}), {batch_, length_, hidden_}), name + "out", hidden_,
                 hidden_);
  }

  Tensor layer(const Tensor& input, const std::string& name) {
    const auto scope = graph_.scope("layer." + name);
    const Tensor x = input + attend(norm(graph_, input, name + "norm1.", hidden_), name);
    const Tensor wide =
        gelu(dense(norm(graph_, x, name + "norm2.", hidden_), name + "up", hidden_, 4 * hidden_));
    return x + dense(wide, name + "down", 4 * hidden_, hidden_);
  }

  const DType dtype_;
  const std::int64_t batch_, length_, hidden_, heads_, layers_;
  Graph graph_{"transformer"};
};

Graph build_transformer(DType dtype, const Extents& dims) { return Transformer(dtype, dims).build(); }

}  // namespace

const Builder& builder_of(std::string_view name) {
  static const std::array<Builder, 22> table = {{{"softmax", 2, true, build_softmax},
                                                 {"log_softmax", 2, true, build_log_softmax},
                                                 {"layer_norm", 2, true, build_layer_norm},
                                                 {"rms_norm", 2, true, build_rms_norm},
                                                 {"row_sum", 2, true, build_row_sum},
                                                 {"column_sum", 2, false, build_column_sum},
                                                 {"transpose", 2, false, build_transpose},
                                                 {"elementwise", 2, true, build_elementwise},
                                                 {"bias_gelu", 2, true, build_bias_gelu},
                                                 {"residual_layer_norm", 3, true, build_residual_layer_norm},
                                                 {"matmul_bias_gelu", 3, true, build_matmul_bias_gelu},
                                                 {"transformer", 5, true, build_transformer},
                                                 {"gelu", 2, true, build_gelu},
                                                 {"gelu_tanh", 2, true, build_gelu_tanh},
                                                 {"nll", 2, true, build_nll},
                                                 {"dropout", 2, true, build_dropout},
                                                 {"adam", 1, true, build_adam},
                                                 {"softmax_backward", 2, true, build_softmax_backward},
                                                 {"norm_backward", 2, false, build_norm_backward},
                                                 {"encoder", 5, true, build_encoder},
                                                 {"decode_step", 5, true, build_decode_step},
                                                 {"lstm", 3, false, build_lstm}}};
  for (const Builder& builder : table) {
    if (builder.name == name) return builder;
  }
  throw std::runtime_error("bench/cases.json names no builder of this program: " + std::string(name));
}

}  // namespace fuse::bench
