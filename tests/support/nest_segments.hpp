// The phases whose nests are enumerated and run: each graph is one kernel of one phase. Small, and with
// extents that few splits divide. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>
#include <string>
#include <vector>

namespace fuse::test {

struct NestPhase {
  std::string name{};
  Graph graph;
  bool reduces = true;  ///< rows or columns
};

/// Rows and columns of the graphs below; `columns` is a multiple of 8.
inline std::vector<NestPhase> nest_segments(std::int64_t rows = 37, std::int64_t columns = 72) {
  std::vector<NestPhase> phases;
  const auto add = [&](const char* name, bool reduces, const auto& fill) {
    Graph g(name);
    fill(g, g.input("x", f32, {rows, columns}));
    phases.push_back({name, std::move(g), reduces});
  };
  add("softmax", true, [](Graph& g, const Tensor& x) { g.output("y", softmax(x)); });
  add("layer_norm", true, [&](Graph& g, const Tensor& x) {
    const Tensor gamma = g.input("gamma", f32, {columns}), average = mean(x, {1}, {.keep_dims = true}),
                 apart = x - average;
    const Tensor scale = rsqrt(mean(apart * apart, {1}, {.keep_dims = true}) + 1e-5);
    g.output("y", apart * scale * gamma);
    g.output("mean", average);
    g.output("scale", scale);
  });
  add("row_sum", true, [](Graph& g, const Tensor& x) { g.output("y", sum(x, {1})); });
  add("column_sum", true, [](Graph& g, const Tensor& x) { g.output("y", sum(x, {0})); });
  add("column_mean", true, [&](Graph& g, const Tensor&) {
    const Tensor z = g.input("z", f16, {rows, columns});
    g.output("y", convert(sum(-convert(z, f32), {0}) * (1.0 / static_cast<double>(rows)), f16));
  });
  add("layer_norm_backward", true, [&](Graph& g, const Tensor& x) {
    const Tensor dy = g.input("dy", f32, {rows, columns}), gamma = g.input("gamma", f32, {columns});
    const Tensor scaled = dy * gamma;
    g.output("dgamma", sum(dy * x, {0}));
    g.output("dbeta", sum(dy, {0}));
    g.output("dx", scaled - mean(scaled, {1}, {.keep_dims = true}) -
                       x * mean(scaled * x, {1}, {.keep_dims = true}));
  });
  add("cumsum", false, [](Graph& g, const Tensor& x) { g.output("y", cumulative_sum(x, 1)); });
  add("elements", false, [&](Graph& g, const Tensor& x) {
    const Tensor w = g.input("w", f32, {columns});
    g.output("y", exp(x) * w);
    g.output("z", x + w);
  });
  add("transposed", false, [&](Graph& g, const Tensor& x) {
    g.output("y", exp(transpose(g.input("a", f32, {columns, rows}), {1, 0})) + x);
  });
  return phases;
}

}  // namespace fuse::test
