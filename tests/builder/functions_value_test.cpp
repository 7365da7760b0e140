// Compound functions against their definitions, written as loops, in f64.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fuse/functions.hpp>
#include <limits>

#include "base/access.hpp"
#include "value_support.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::ReferenceTensor;

TEST_CASE("softmax and log_softmax have the values of their definitions", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width);
  std::vector<double> expected, logs;
  for (int row = 0; row < rows; ++row) {
    for (const double p : softmax_row({x.begin() + row * width, x.begin() + (row + 1) * width})) {
      expected.push_back(p);
      logs.push_back(std::log(p));
    }
  }
  require_near(of_rows(x, [](Tensor t) { return softmax(t); }), expected);
  require_near(of_rows(x, [](Tensor t) { return log_softmax(t); }), logs);
  require_near(of_rows(x,
                       [](Tensor t) {
                         return transpose(softmax(transpose(t, {1, 0}), 0), {1, 0});
                       }),
               expected);
}

TEST_CASE("softmax of large values does not overflow", "[builder][functions]") {
  std::vector<double> x(rows * width, 1e6);
  require_near(of_rows(x, [](Tensor t) { return softmax(t); }), std::vector<double>(rows * width, 0.2));
  require_near(of_rows(x, [](Tensor t) { return log_softmax(t); }),
               std::vector<double>(rows * width, -std::log(5.0)));
}

TEST_CASE("normalisations have the values of their definitions", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width), gamma = wave(width, 1.5), beta = wave(width, 0.5);
  std::vector<double> layer(x.size()), rms(x.size());
  for (int row = 0; row < rows; ++row) {
    double mean = 0, var = 0, squares = 0;
    for (int i = 0; i < width; ++i) mean += x[row * width + i] / width;
    for (int i = 0; i < width; ++i) {
      var += std::pow(x[row * width + i] - mean, 2) / width;
      squares += std::pow(x[row * width + i], 2) / width;
    }
    for (int i = 0; i < width; ++i) {
      layer[row * width + i] = (x[row * width + i] - mean) / std::sqrt(var + 1e-5) * gamma[i] + beta[i];
      rms[row * width + i] = x[row * width + i] / std::sqrt(squares + 1e-6) * gamma[i];
    }
  }
  for (const bool symbolic : {false, true}) {
    Graph g;
    const Dim n = symbolic ? g.dim("N") : Dim(width);
    const Tensor t = g.input("x", f64, {rows, n}), s = g.parameter("gamma", f64, {n});
    const Tensor b = g.parameter("beta", f64, {n});
    const runtime::Values values = {
        {"x", host(x, {rows, width})}, {"gamma", host(gamma, {width})}, {"beta", host(beta, {width})}};
    g.output("y", layer_norm(t, s, b));
    require_near(run(g, values), layer);
    g.output("z", rms_norm(t, s));
    const auto dim = [](std::string_view) -> std::int64_t { return width; };
    const auto result = runtime::evaluate(ir_of(g), values, dim, runtime::Precision::exact);
    const auto z = result.outputs.at("z").real();
    require_near({z.begin(), z.end()}, rms);
  }
}

TEST_CASE("activations have the values of their definitions", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width, 3);
  std::vector<double> gelus, silus;
  for (const double value : x) {
    gelus.push_back(value / 2 * (1 + std::erf(value / std::sqrt(2.0))));
    silus.push_back(value / (1 + std::exp(-value)));
  }
  require_near(of_rows(x, [](Tensor t) { return gelu(t); }), gelus);
  require_near(of_rows(x, [](Tensor t) { return silu(t); }), silus);
}

TEST_CASE("attention has the values of its definition", "[builder][functions]") {
  constexpr int heads = 2, length = 4;
  const std::size_t count = heads * length * width;
  const std::vector<double> q = wave(count), k = wave(count, 1.5), v = wave(count, 0.7);
  for (const bool causal : {false, true}) {
    for (const bool symbolic : {false, true}) {
      std::vector<double> expected(count, 0.0);
      for (int h = 0; h < heads; ++h) {
        for (int i = 0; i < length; ++i) {
          std::vector<double> scores;
          for (int j = 0; j < length; ++j) {
            double dot = 0;
            for (int d = 0; d < width; ++d) {
              dot += q[(h * length + i) * width + d] * k[(h * length + j) * width + d];
            }
            const bool hidden = causal && j > i;
            scores.push_back(hidden ? -std::numeric_limits<double>::infinity() : dot / std::sqrt(width));
          }
          const std::vector<double> p = softmax_row(scores);
          for (int j = 0; j < length; ++j) {
            for (int d = 0; d < width; ++d) {
              expected[(h * length + i) * width + d] += p[j] * v[(h * length + j) * width + d];
            }
          }
        }
      }
      Graph g;
      const std::vector<Dim> dims = {1, heads, length, symbolic ? g.dim("D", {.min = 1}) : Dim(width)};
      const Tensor tq = g.input("q", f64, dims), tk = g.input("k", f64, dims), tv = g.input("v", f64, dims);
      g.output("y", attention(tq, tk, tv, {.causal = causal}));
      const std::vector<std::int64_t> shape = {1, heads, length, width};
      require_near(run(g, {{"q", host(q, shape)}, {"k", host(k, shape)}, {"v", host(v, shape)}}), expected);
    }
  }
}

TEST_CASE("linear has the values of its definition", "[builder][functions]") {
  const std::vector<double> x = wave(2 * rows * width), w = wave(width * 4, 0.9), b = wave(4, 3);
  std::vector<double> expected;
  for (int row = 0; row < 2 * rows; ++row) {
    for (int out = 0; out < 4; ++out) {
      double sum = b[out];
      for (int i = 0; i < width; ++i) sum += x[row * width + i] * w[i * 4 + out];
      expected.push_back(sum);
    }
  }
  Graph g;
  const Tensor t = g.input("x", f64, {2, rows, width}), weight = g.parameter("w", f64, {width, 4});
  g.output("y", linear(t, weight, g.parameter("b", f64, {4})));
  require_near(run(g, {{"x", host(x, {2, rows, width})}, {"w", host(w, {width, 4})}, {"b", host(b, {4})}}),
               expected);
}

TEST_CASE("cross entropy is 0 for a label outside of the classes", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width);
  Graph g;
  const Tensor logits = g.input("x", f64, {rows, width});
  g.output("y", cross_entropy(logits, g.input("labels", i64, {rows})));
  ReferenceTensor labels(i64, {rows});
  const std::int64_t chosen[rows] = {4, -1, width};
  std::copy(chosen, chosen + rows, labels.elements<std::int64_t>().begin());
  const double p = softmax_row({x.begin(), x.begin() + width})[4];
  const std::vector<double> loss = run(g, {{"x", host(x, {rows, width})}, {"labels", labels.to_host()}});
  require_near(loss, {-std::log(p), 0, 0});
  CHECK_FALSE(std::signbit(loss[1]));
}
