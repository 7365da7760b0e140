// Whom `fusec run --check` and `fusec bisect` accuse. SPDX-License-Identifier: Apache-2.0
#include "fusec/check.hpp"

#include <cmath>
#include <fuse/fuse.hpp>
#include <string>

#include "runtime/random_fill.hpp"
#include "runtime/reference/evaluate.hpp"
#include "support/catch.hpp"

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
      const auto exact = evaluate(graph.ir(), values, no_dims, runtime::Precision::exact);
      return std::fabs(y - exact.outputs.at("y").get(0));
    };
    const auto same = evaluate(graph.ir(), values, no_dims, runtime::Precision::same_type);
    const double beyond_ulps = 4 * static_cast<double>(got) * 0x1p-23;
    const double error = errs(static_cast<double>(got));
    accused_by_one += error > 4 * errs(same.outputs.at("y").get(0)) && error > beyond_ulps;

    fusec::OutputChecker checker(graph.ir(), values, no_dims);
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

TEST_CASE("check: whole numbers are not nudged, integers and infinities have to be equal", "[fusec]") {
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
  fusec::OutputChecker checker(graph.ir(), values, no_dims);

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
