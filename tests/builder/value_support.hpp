// What tests of the values of compound functions share: a graph evaluated in f64, and inputs for it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <fuse/functions.hpp>
#include <limits>
#include <vector>

#include "base/access.hpp"
#include "builder_support.hpp"
#include "eval/evaluate.hpp"

namespace fuse::test {

constexpr int rows = 3, width = 5;
constexpr double inf = std::numeric_limits<double>::infinity();

/// Values that repeat neither along rows nor along columns.
inline std::vector<double> wave(std::size_t count, double scale = 2) {
  std::vector<double> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = scale * std::sin(1.7 * static_cast<double>(i) + 0.3);
  return values;
}

inline runtime::HostTensor host(const std::vector<double>& values, std::vector<std::int64_t> shape) {
  runtime::ReferenceTensor tensor(f64, std::move(shape));
  REQUIRE(tensor.elements<double>().size() == values.size());
  std::copy(values.begin(), values.end(), tensor.elements<double>().begin());
  return tensor.to_host();
}

inline std::vector<double> run(const Graph& g, const runtime::Values& values) {
  const auto dim = [](std::string_view) -> std::int64_t { return width; };
  auto result = runtime::evaluate(ir_of(g), values, dim, runtime::Precision::exact);
  const auto y = result.outputs.at("y").real();
  return {y.begin(), y.end()};
}

inline void require_near(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    REQUIRE(got[i] == Approx(expected[i]).epsilon(1e-12).margin(1e-12));
}

/// exp(x) over its sum.
inline std::vector<double> softmax_row(std::vector<double> x) {
  double sum = 0;
  for (double& value : x) sum += value = std::exp(value);
  for (double& value : x) value /= sum;
  return x;
}

/// A graph with x [3, 5] and an output y.
template <class F>
std::vector<double> of_rows(const std::vector<double>& x, F function) {
  Graph g;
  g.output("y", function(g.input("x", f64, {rows, width})));
  return run(g, {{"x", host(x, {rows, width})}});
}

}  // namespace fuse::test
