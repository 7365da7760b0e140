// The parts that models are built of, against plain loops. SPDX-License-Identifier: Apache-2.0
#include "../../examples/models/asr.hpp"
#include "../../examples/models/convolution.hpp"
#include "../../examples/models/recurrent.hpp"
#include "base/access.hpp"
#include "eval/evaluate.hpp"
#include "models/model_runs.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

std::int64_t no_extent(std::string_view) { return 0; }

/// The exact value of output y.
std::vector<double> exact_y(const Graph& graph, const runtime::Values& values) {
  const auto outputs = evaluate(ir_of(graph), values, no_extent, runtime::Precision::exact).outputs;
  const auto y = outputs.at("y").real();
  return {y.begin(), y.end()};
}

void check_near(const std::vector<double>& got, const std::vector<double>& wanted) {
  REQUIRE(got.size() == wanted.size());
  for (std::size_t i = 0; i < got.size(); ++i) {
    INFO("element " << i << ": " << got[i] << ", not " << wanted[i]);
    CHECK(std::abs(got[i] - wanted[i]) <= 1e-12 * (1 + std::abs(wanted[i])));
  }
}

double squashed(double x) { return 1 / (1 + std::exp(-x)); }

}  // namespace

TEST_CASE("models: a convolution and a pool are those of plain loops", "[models]") {
  constexpr std::int64_t height = 5, width = 6, in = 2, out = 3;
  for (const std::int64_t padding : {0, 1}) {
    Graph g;
    example::Layers layers(g, f32);
    const Tensor x = g.input("x", f32, {1, height, width, in});
    g.output("y", example::max_pool(example::convolution(layers, x, "c", 3, padding, out), 2, 1));
    const runtime::Values values = model_values(g);
    const auto at = [&](std::int64_t row, std::int64_t column, std::int64_t c) {
      const bool inside = row >= 0 && row < height && column >= 0 && column < width;
      return inside ? values.at("x").get((row * width + column) * in + c) : 0.0;
    };
    const auto convolved = [&](std::int64_t row, std::int64_t column, std::int64_t o) {
      double total = values.at("c.bias").get(o);
      for (std::int64_t tap = 0; tap < 9 * in; ++tap) {
        const std::int64_t down = tap / in / 3, right = tap / in % 3;
        total += at(row + down - padding, column + right - padding, tap % in) *
                 values.at("c.weight").get(tap * out + o);
      }
      return total;
    };
    std::vector<double> wanted;
    for (std::int64_t row = 0; row < (height - 2 + 2 * padding) / 2; ++row) {
      for (std::int64_t column = 0; column < width - 2 + 2 * padding; ++column) {
        for (std::int64_t o = 0; o < out; ++o)
          wanted.push_back(std::max(convolved(2 * row, column, o), convolved(2 * row + 1, column, o)));
      }
    }
    check_near(exact_y(g, values), wanted);
  }
}

TEST_CASE("models: an LSTM is the one of plain loops, in both directions", "[models]") {
  constexpr std::int64_t steps = 3, in = 2, width = 2;
  for (const bool backward : {false, true}) {
    Graph g;
    example::Layers layers(g, f32);
    g.output("y",
             fuse::stack(example::lstm(layers, {g.input("x", f32, {steps, 1, in})}, "l", width, backward)));
    const runtime::Values values = model_values(g);
    std::vector<double> hidden(width), cell(width), wanted(steps * width);
    for (std::int64_t i = 0; i < steps; ++i) {
      const std::int64_t t = backward ? steps - 1 - i : i;
      const auto sum = [&](std::int64_t column) {
        double total = values.at("l.bias").get(column);
        for (std::int64_t k = 0; k < in; ++k)
          total += values.at("x").get(t * in + k) * values.at("l.input.weight").get(k * 4 * width + column);
        for (std::int64_t k = 0; k < width; ++k)
          total += hidden[k] * values.at("l.hidden.weight").get(k * 4 * width + column);
        return total;
      };
      std::vector<double> next(width);
      for (std::int64_t u = 0; u < width; ++u) {
        cell[u] = squashed(sum(width + u)) * cell[u] + squashed(sum(u)) * std::tanh(sum(2 * width + u));
        next[u] = squashed(sum(3 * width + u)) * std::tanh(cell[u]);
        wanted[t * width + u] = next[u];
      }
      hidden = next;
    }
    check_near(exact_y(g, values), wanted);
  }
}

TEST_CASE("models: a GRU is that of DIEN's equations, with attention and where a history ends", "[models]") {
  constexpr std::int64_t steps = 3, in = 2, width = 2;
  Graph g;
  example::Layers layers(g, f32);
  const Tensor x = g.input("x", f32, {steps, 1, in}), weights = g.input("a", f32, {steps, 1, 1});
  const Tensor present = g.iota(i32, {steps, 1, 1}, 0) < 2;
  std::vector<example::GruStep> with;
  for (std::int64_t t = 0; t < steps; ++t)
    with.push_back({.attention = example::at(weights, 0, t), .present = example::at(present, 0, t)});
  g.output("y", fuse::stack(example::gru(layers, x, "g", width, with)));
  const runtime::Values values = model_values(g);
  std::vector<double> hidden(width), wanted;
  for (std::int64_t t = 0; t < steps; ++t) {
    const auto given = [&](std::int64_t column) {
      double total = values.at("g.bias").get(column);
      for (std::int64_t k = 0; k < in; ++k)
        total += values.at("x").get(t * in + k) * values.at("g.input.weight").get(k * 3 * width + column);
      return total;
    };
    const auto kept = [&](std::int64_t column) {
      double total = 0;
      for (std::int64_t k = 0; k < width; ++k)
        total += hidden[k] * values.at("g.hidden.weight").get(k * 3 * width + column);
      return total;
    };
    std::vector<double> next = hidden;
    for (std::int64_t u = 0; u < width && t < 2; ++u) {
      const double update = values.at("a").get(t) * squashed(given(u) + kept(u));
      const double reset = squashed(given(width + u) + kept(width + u));
      const double candidate = std::tanh(given(2 * width + u) + reset * kept(2 * width + u));
      next[u] = (1 - update) * hidden[u] + update * candidate;
    }
    hidden = next;
    wanted.insert(wanted.end(), hidden.begin(), hidden.end());
  }
  check_near(exact_y(g, values), wanted);
}

TEST_CASE("models: a band matrix convolves as windows of frames do", "[models]") {
  constexpr std::int64_t frames = 4, reach = 2, filters = 2;
  Graph g;
  example::Layers layers(g, f32);
  const Tensor taps = layers.weight("taps", {2 * reach + 1, filters});
  g.output("y", matmul(g.input("x", f32, {1, frames}), example::band_matrix(layers, taps, frames)));
  const runtime::Values values = model_values(g);
  std::vector<double> wanted;
  for (std::int64_t to = 0; to < frames; ++to) {
    for (std::int64_t f = 0; f < filters; ++f) {
      double total = 0;
      for (std::int64_t from = std::max<std::int64_t>(0, to - reach); from < std::min(frames, to + reach + 1);
           ++from)
        total += values.at("x").get(from) * values.at("taps").get((from - to + reach) * filters + f);
      wanted.push_back(total);
    }
  }
  check_near(exact_y(g, values), wanted);
}
