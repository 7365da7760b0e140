// Whom `fusec run --check` and `fusec bisect` accuse. SPDX-License-Identifier: Apache-2.0
#include "fusec/values/check.hpp"

#include <cmath>
#include <fuse/fuse.hpp>
#include <string>

#include "base/access.hpp"
#include "eval/bounds/error_bound.hpp"
#include "eval/evaluate.hpp"
#include "support/catch.hpp"
#include "tensors/random_fill.hpp"

namespace fuse {
namespace {

constexpr std::int64_t count = 64;

std::int64_t no_dims(std::string_view) { return 0; }

/// exp of a sum: one number, of which one evaluation tells little.
Graph exp_of_sum(DType in) {
  Graph g;
  g.output("y", exp(sum(convert(g.input("x", in, {count}), f32))));
  return g;
}

runtime::HostTensor scalar(float value) {
  auto tensor = runtime::HostTensor::make(f32, {});
  tensor.set(0, static_cast<double>(value));
  return tensor;
}

/// As a device may have it: the sum from the other end.
float backwards(const runtime::HostTensor& x) {
  float sum = 0;
  for (std::int64_t i = count; i-- > 0;) sum += static_cast<float>(x.get(i));
  return std::exp(sum);
}

}  // namespace

TEST_CASE("check: sums in another order are right, whatever one evaluation errs by", "[fusec]") {
  const DType in = GENERATE(f32, bf16);
  const Graph graph = exp_of_sum(in);
  int accused_by_one = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    INFO("seed " << seed);
    runtime::Values values;
    auto x = runtime::HostTensor::make(in, {count});
    runtime::random_fill_normal(x, seed, "x", 1);
    const float got = backwards(x);
    values.emplace("x", std::move(x));
    const auto errs = [&](double y) {
      const auto exact = evaluate(ir_of(graph), values, no_dims, runtime::Precision::exact);
      return std::fabs(y - exact.outputs.at("y").get(0));
    };
    const auto same = evaluate(ir_of(graph), values, no_dims, runtime::Precision::same_type);
    const double beyond_ulps = 4 * static_cast<double>(got) * 0x1p-23;
    const double error = errs(static_cast<double>(got));
    accused_by_one += error > 4 * errs(same.outputs.at("y").get(0)) && error > beyond_ulps;

    fusec::OutputChecker checker(ir_of(graph), values, no_dims);
    const fusec::Verdict right = checker.check("y", scalar(got));
    INFO(right.text);
    CHECK(right.ok);
    // A ten-thousandth off is no rounding of 64 terms.
    const fusec::Verdict wrong = checker.check("y", scalar(got * 1.0001F));
    INFO(wrong.text);
    CHECK(!wrong.ok);
    CHECK(wrong.over_bound > 1);
  }
  if (in == f32) CHECK(accused_by_one > 0);  // sums of a few bits each are exact
}

TEST_CASE("check: f64 sums in another order are right, an element that is 300 ulps off is not", "[fusec]") {
  constexpr std::int64_t rows = 4, columns = 1000;
  Graph g;
  g.output("y", sum(g.input("x", f64, {rows, columns}), {1}));
  for (std::uint64_t seed = 0; seed < 20; ++seed) {
    INFO("seed " << seed);
    auto x = runtime::HostTensor::make(f64, {rows, columns});
    runtime::random_fill(x, seed, "x", 0.5, 1.5);
    auto y = runtime::HostTensor::make(f64, {rows});
    for (std::int64_t row = 0; row < rows; ++row) {
      double total = 0;
      for (std::int64_t i = columns; i-- > 0;) total += x.get(row * columns + i);
      y.set(row, total);
    }
    runtime::Values values;
    values.emplace("x", std::move(x));
    fusec::OutputChecker checker(ir_of(g), values, no_dims);
    const fusec::Verdict right = checker.check("y", y);
    INFO(right.text);
    CHECK(right.ok);
    y.set(2, y.get(2) + 300 * runtime::ulp_of(y.get(2), f64));
    const fusec::Verdict wrong = checker.check("y", y);
    INFO(wrong.text);
    CHECK(!wrong.ok);
  }
}

TEST_CASE("check: a small element is judged by its own size", "[fusec]") {
  Graph g;
  g.output("y", exp(g.input("x", f32, {3})));
  runtime::Values values;
  auto x = runtime::HostTensor::make(f32, {3});
  auto y = x;
  const float elements[] = {-20.3F, 0.7F, 20.1F};
  for (std::int64_t i = 0; i < 3; ++i) {
    x.set(i, static_cast<double>(elements[i]));
    y.set(i, static_cast<double>(std::exp(elements[i])));
  }
  values.emplace("x", std::move(x));
  fusec::OutputChecker checker(ir_of(g), values, no_dims);
  CHECK(checker.check("y", y).ok);
  y.set(0, 2 * y.get(0));  // which is less than what the largest element may be off
  CHECK(!checker.check("y", y).ok);
}

TEST_CASE("check: what a rounding decides may be what any right device decides", "[fusec]") {
  // 10 tenths are 1, or a little less.
  Graph g;
  const Tensor total = sum(g.input("x", f64, {10}));
  g.output("whole", convert(total, i64));
  g.output("floor", floor(total));
  runtime::Values values;
  auto x = runtime::HostTensor::make(f64, {10});
  for (std::int64_t i = 0; i < 10; ++i) x.set(i, 0.1);
  values.emplace("x", std::move(x));
  fusec::OutputChecker checker(ir_of(g), values, no_dims);
  auto whole = runtime::HostTensor::make(i64, {});
  auto real = runtime::HostTensor::make(f64, {});
  for (const int answer : {0, 1}) {
    whole.set_int(0, answer);
    real.set(0, answer);
    CHECK(checker.check("whole", whole).ok);
    CHECK(checker.check("floor", real).ok);
  }
  for (const int answer : {-1, 2}) {
    whole.set_int(0, answer);
    CHECK(!checker.check("whole", whole).ok);
  }
}

TEST_CASE("check: it evaluates in more ways only as far as the result needs it", "[fusec]") {
  // What follows each step: a right result, one that is wrong, and one where decisions are open.
  Graph g;
  const Tensor x = g.input("x", f32, {1000});
  g.output("plain", sum(x));
  runtime::Values values;
  auto tensor = runtime::HostTensor::make(f32, {1000});
  double total = 0;
  for (std::int64_t i = 0; i < 1000; ++i) {
    tensor.set(i, 0.1 * static_cast<double>(i % 7));
    total += tensor.get(i);
  }
  values.emplace("x", tensor);
  const auto steps = [&](const Graph& graph, const std::string& output, double value, bool right) {
    std::vector<std::string> told;
    fusec::OutputChecker checker(ir_of(graph), values, no_dims,
                                 [&](std::string what) { told.push_back(std::move(what)); });
    auto got = runtime::HostTensor::make(f32, {});
    got.set(0, value);
    CHECK(checker.check(output, got).ok == right);
    return told;
  };
  CHECK(steps(g, "plain", total, true).size() == 1);
  const std::vector<std::string> wrong = steps(g, "plain", 0, false);
  REQUIRE(wrong.size() == 2);
  CHECK(wrong[1].starts_with("evaluating in 16 ways"));

  Graph open;
  open.output("sign", sum(sign(open.input("x", f32, {1000}) - mean(open.input("y", f32, {1000})))));
  values.emplace("y", tensor);
  for (std::int64_t i = 0; i < 1000; ++i) values.at("x").set(i, total / 1000);
  const std::vector<std::string> decided = steps(open, "sign", 1000, true);
  REQUIRE(decided.size() == 2);
  CHECK(decided[1].starts_with("evaluating in 47 ways"));

  // Partial sums overflow in some orders, and each of the first 16 ways draws one of four ends.
  Graph large;
  large.output("large", sum(large.input("x", f32, {1000}) * 1e38F));
  for (std::int64_t i = 0; i < 1000; ++i) values.at("x").set(i, i % 2 == 0 ? 3 : -3);
  const std::vector<std::string> overflows = steps(large, "large", 3e37, false);
  REQUIRE(overflows.size() == 3);
  CHECK(overflows[1].starts_with("evaluating in 16 ways"));
  CHECK(overflows[2].starts_with("evaluating in 47 ways"));
}

TEST_CASE("check: a result that tells little is called what it is", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", f32, {4});
  g.output("nan", log(x));
  g.output("infinite", 1.0F / (x - x));
  g.output("constant", x - x + 3.0F);
  g.output("varies", x * 2.0F);
  runtime::Values values;
  auto input = runtime::HostTensor::make(f32, {4});
  for (std::int64_t i = 0; i < 4; ++i) input.set(i, static_cast<double>(-1 - i));
  values.emplace("x", input);
  fusec::OutputChecker checker(ir_of(g), values, no_dims);
  const auto text = [&](const char* name, auto value) {
    auto y = runtime::HostTensor::make(f32, {4});
    for (std::int64_t i = 0; i < 4; ++i) y.set(i, value(i));
    const fusec::Verdict verdict = checker.check(name, y);
    CHECK(verdict.ok);
    CHECK(verdict.bare == (std::string(name) != "varies"));
    return verdict.text;
  };
  CHECK(text("nan", [](auto) { return std::nan(""); }).ends_with(": OK, but every element is NaN"));
  CHECK(text("infinite", [](auto) { return HUGE_VAL; }).ends_with(": OK, but every element is infinite"));
  CHECK(text("constant", [](auto) { return 3.0; }).ends_with(": OK, but every element is 3"));
  CHECK(text("varies", [](auto i) { return -2.0 - 2.0 * static_cast<double>(i); }).ends_with(": OK"));
}

TEST_CASE("check: whole numbers stay, integers and infinities have to be equal", "[fusec]") {
  Graph graph;
  const Tensor x = graph.input("x", f32, {4});
  graph.output("floor", floor(x));
  graph.output("whole", convert(x, i32));
  graph.output("inverse", 1.0F / x);
  runtime::Values values;
  auto tensor = runtime::HostTensor::make(f32, {4});
  const double elements[] = {0, 1, 2, 3};
  for (std::int64_t i = 0; i < 4; ++i) tensor.set(i, elements[i]);
  values.emplace("x", tensor);
  fusec::OutputChecker checker(ir_of(graph), values, no_dims);

  CHECK(checker.check("floor", tensor).ok);
  auto off = tensor;
  off.set(3, 2);
  CHECK(!checker.check("floor", off).ok);
  auto whole = runtime::HostTensor::make(i32, {4});
  for (std::int64_t i = 0; i < 4; ++i) whole.set_int(i, i);
  CHECK(checker.check("whole", whole).ok);
  whole.set_int(2, 3);
  CHECK(!checker.check("whole", whole).ok);
  auto inverse = runtime::HostTensor::make(f32, {4});
  inverse.set(0, HUGE_VAL);
  for (std::int64_t i = 1; i < 4; ++i) inverse.set(i, 1 / elements[i]);
  CHECK(checker.check("inverse", inverse).ok);
  inverse.set(0, 3e38);
  CHECK(!checker.check("inverse", inverse).ok);
}

}  // namespace fuse
