// Functions of models against their definitions, written as loops, in f64.
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <fuse/functions.hpp>

#include "base/access.hpp"
#include "value_support.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::ReferenceTensor;

namespace {

template <class F>
std::vector<double> each(const std::vector<double>& x, F function) {
  std::vector<double> values;
  for (const double value : x) values.push_back(function(value));
  return values;
}

runtime::HostTensor integers(const std::vector<std::int64_t>& values, std::vector<std::int64_t> shape) {
  ReferenceTensor tensor(i64, std::move(shape));
  std::copy(values.begin(), values.end(), tensor.elements<std::int64_t>().begin());
  return tensor.to_host();
}

/// Normalises each run of `count` values: mean 0, variance 1.
std::vector<double> normalized(std::vector<double> x, std::size_t count, double epsilon) {
  for (std::size_t first = 0; first < x.size(); first += count) {
    double mean = 0, variance = 0;
    const auto n = static_cast<double>(count);
    for (std::size_t i = 0; i < count; ++i) mean += x[first + i] / n;
    for (std::size_t i = 0; i < count; ++i) variance += std::pow(x[first + i] - mean, 2) / n;
    for (std::size_t i = 0; i < count; ++i)
      x[first + i] = (x[first + i] - mean) / std::sqrt(variance + epsilon);
  }
  return x;
}

}  // namespace

TEST_CASE("more activations have the values of their definitions", "[builder][functions]") {
  std::vector<double> x = wave(13, 5);
  x.insert(x.end(), {0.0, -800.0, 800.0});
  x.resize(rows * width);
  const auto softplus_of = [](double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::fabs(v))); };
  require_near(of_rows(x, [](Tensor t) { return relu(t); }), each(x, [](double v) { return v > 0 ? v : 0; }));
  require_near(of_rows(x, [](Tensor t) { return sigmoid(t); }),
               each(x, [](double v) { return 1 / (1 + std::exp(-v)); }));
  require_near(of_rows(x, [](Tensor t) { return softplus(t); }), each(x, softplus_of));
  require_near(of_rows(x, [](Tensor t) { return mish(t); }),
               each(x, [&](double v) { return v * std::tanh(softplus_of(v)); }));
  require_near(of_rows(x, [](Tensor t) { return hard_swish(t); }),
               each(x, [](double v) { return v * std::min(std::max(v + 3, 0.0), 6.0) / 6; }));
  require_near(of_rows(x, [](Tensor t) { return gelu_tanh(t); }), each(x, [](double v) {
                 return v / 2 * (1 + std::tanh(std::sqrt(2 / std::acos(-1.0)) * (v + 0.044715 * v * v * v)));
               }));
}

TEST_CASE("logsumexp has no overflow, and rows of -inf are -inf", "[builder][functions]") {
  std::vector<double> x = wave(rows * width, 3);
  for (int i = 0; i < width; ++i) x[width + i] = -inf;
  x[2 * width] = 1000;
  std::vector<double> expected;
  for (int row = 0; row < rows; ++row) {
    double most = -inf, sum = 0;
    for (int i = 0; i < width; ++i) most = std::max(most, x[row * width + i]);
    for (int i = 0; i < width; ++i) sum += std::exp(x[row * width + i] - (most == -inf ? 0 : most));
    expected.push_back(std::log(sum) + (most == -inf ? 0 : most));
  }
  const std::vector<double> y = of_rows(x, [](Tensor t) { return logsumexp(t, 1); });
  CHECK(y[1] == -inf);
  require_near({y[0], y[2]}, {expected[0], expected[2]});
  Graph g;
  const Tensor t = g.input("x", bf16, {g.dim("B"), 4, 2});
  CHECK(logsumexp(t).type_string() == "bf16[]");
  CHECK(logsumexp(t, {0, -1}, {.keep_dims = true}).type_string() == "bf16[1, 4, 1]");
}

TEST_CASE("var divides by n, or by n - correction", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width);
  std::vector<double> population, sample;
  for (int row = 0; row < rows; ++row) {
    double mean = 0, squares = 0;
    for (int i = 0; i < width; ++i) mean += x[row * width + i] / width;
    for (int i = 0; i < width; ++i) squares += std::pow(x[row * width + i] - mean, 2);
    population.push_back(squares / width);
    sample.push_back(squares / (width - 1));
  }
  require_near(of_rows(x, [](Tensor t) { return var(t, 1); }), population);
  require_near(of_rows(x, [](Tensor t) { return var(t, -1, {.correction = 1}); }), sample);
  Graph g;
  const Tensor t = g.input("x", f64, {rows, g.dim("N", {.min = 1})});
  g.output("y", var(t, {1}, {.keep_dims = true, .correction = 1}));
  require_near(run(g, {{"x", host(x, {rows, width})}}), sample);
}

TEST_CASE("norms over channels have the values of their definitions", "[builder][functions]") {
  constexpr int batch = 2, channels = 4, area = 6;
  const std::vector<double> x = wave(batch * channels * area), gamma = wave(channels, 1.5),
                            beta = wave(channels, 0.5);
  const std::vector<double> mean = wave(channels, 0.3);
  std::vector<double> variance = wave(channels, 0.7);
  for (double& v : variance) v = v * v + 0.1;
  const auto scaled = [&](std::vector<double> y) {
    for (std::size_t i = 0; i < y.size(); ++i)
      y[i] = y[i] * gamma[i / area % channels] + beta[i / area % channels];
    return y;
  };
  std::vector<double> by_batch = x;
  for (std::size_t i = 0; i < x.size(); ++i) {
    const std::size_t c = i / area % channels;
    by_batch[i] = (x[i] - mean[c]) / std::sqrt(variance[c] + 1e-5);
  }
  Graph g;
  const Tensor t = g.input("x", f64, {batch, channels, 2, 3});
  const auto row = [&](const char* name) { return g.parameter(name, f64, {channels}); };
  const Tensor scale = row("gamma"), shift = row("beta"), average = row("mean"), spread = row("variance");
  g.output("batch", batch_norm(t, scale, shift, average, spread));
  g.output("group", group_norm(t, 2, scale, shift));
  g.output("instance", instance_norm(t, scale, shift));
  const auto no_dim = [](std::string_view) -> std::int64_t { return 0; };
  const auto result = runtime::evaluate(ir_of(g),
                                        {{"x", host(x, {batch, channels, 2, 3})},
                                         {"gamma", host(gamma, {channels})},
                                         {"beta", host(beta, {channels})},
                                         {"mean", host(mean, {channels})},
                                         {"variance", host(variance, {channels})}},
                                        no_dim, runtime::Precision::exact);
  const auto values = [&](const char* name) {
    const auto y = result.outputs.at(name).real();
    return std::vector<double>(y.begin(), y.end());
  };
  require_near(values("batch"), scaled(by_batch));
  require_near(values("group"), scaled(normalized(x, channels / 2 * area, 1e-5)));
  require_near(values("instance"), scaled(normalized(x, area, 1e-5)));
  CHECK(error_of([&](auto& at) { at = here(), group_norm(t, 3, scale, shift); }) ==
        "HERE: group_norm(f64[2, 4, 2, 3], f64[4], f64[4]): the channels, 4, are not known to be a multiple "
        "of 3\n"
        "  hint: name a number of groups that divides the channels");
  CHECK(code_of([&] { group_norm(t, 0, scale, shift); }) == ErrorCode::invalid_argument);
  CHECK(code_of([&] { instance_norm(scale, scale, shift); }) == ErrorCode::shape_mismatch);
}

TEST_CASE("linear takes a weight as PyTorch has it", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width), w = wave(width * 4, 0.9), b = wave(4, 3);
  std::vector<double> turned(w.size());
  for (int i = 0; i < width; ++i) {
    for (int out = 0; out < 4; ++out) turned[out * width + i] = w[i * 4 + out];
  }
  Graph g, h;
  g.output("y", linear(g.input("x", f64, {rows, width}), g.parameter("w", f64, {width, 4}),
                       g.parameter("b", f64, {4})));
  h.output("y", linear(h.input("x", f64, {rows, width}), h.parameter("w", f64, {4, width}),
                       h.parameter("b", f64, {4}), {.layout = WeightLayout::out_in}));
  const auto bias = host(b, {4}), input = host(x, {rows, width});
  require_near(run(h, {{"x", input}, {"w", host(turned, {4, width})}, {"b", bias}}),
               run(g, {{"x", input}, {"w", host(w, {width, 4})}, {"b", bias}}));
  CHECK(
      error_of([&](auto& at) {
        const Tensor t = h.input("t", f64, {rows, width});
        at = here(), linear(t, t, {.layout = WeightLayout::in_out});
      }) ==
      "HERE: linear(f64[3, 5], f64[3, 5]): the last extent of x and the first of the weight differ: 5 and 3\n"
      "  hint: check the order of the dims and of the arguments");
}

TEST_CASE("one_hot is 0 everywhere for an index out of range", "[builder][functions]") {
  Graph g;
  g.output("y", one_hot(g.input("i", i64, {3}), 4, f64));
  require_near(run(g, {{"i", integers({2, -1, 4}, {3})}}), {0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("classes are counted beyond the type of the labels", "[builder][functions]") {
  Graph g;
  g.output("y", sum(one_hot(g.input("i", u8, {1}), 300, f64), 1));
  ReferenceTensor five(u8, {1});
  five.elements<std::int64_t>()[0] = 5;
  require_near(run(g, {{"i", five.to_host()}}), {1});
  Graph h;
  h.output("y", cross_entropy(h.input("x", f64, {1, 600}) * 0, h.input("i", u8, {1})));
  require_near(run(h, {{"i", five.to_host()}, {"x", host(wave(600), {1, 600})}}), {std::log(600.0)});
}

TEST_CASE("dropout takes numbers for its seed and offset, and var is not negative", "[builder][functions]") {
  Graph g;
  const Tensor x = g.input("x", f64, {3});
  CHECK(dropout(x, 0.5, 42, 0).type_string() == "f64[3]");
  CHECK(code_of([&] { dropout(x, 1.0, 42, 0); }) == ErrorCode::invalid_argument);
  g.output("y", var(x, 0, {.correction = 5}));
  CHECK(run(g, {{"x", host({1, 2, 4}, {3})}})[0] == inf);
}

TEST_CASE("tril and triu keep a triangle", "[builder][functions]") {
  const std::vector<double> x = wave(rows * width);
  for (const int diagonal : {-2, 0, 1}) {
    std::vector<double> lower = x, upper = x;
    for (int i = 0; i < rows; ++i) {
      for (int j = 0; j < width; ++j) {
        if (j - i > diagonal) lower[i * width + j] = 0;
        if (j - i < diagonal) upper[i * width + j] = 0;
      }
    }
    require_near(of_rows(x, [&](Tensor t) { return tril(t, diagonal); }), lower);
    require_near(of_rows(x, [&](Tensor t) { return triu(t, diagonal); }), upper);
  }
}
