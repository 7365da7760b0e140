// What `fusec run --check` says where errors leave a decision open. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <fuse/fuse.hpp>
#include <limits>
#include <map>
#include <string>
#include <vector>

#include "base/access.hpp"
#include "fusec/values/check.hpp"
#include "support/catch.hpp"
#include "tensors/random_fill.hpp"

namespace fuse {
namespace {

std::int64_t without_dims(std::string_view) { return 0; }

/// The values of `x`, by index.
runtime::HostTensor filled(DType dtype, std::vector<std::int64_t> shape,
                           const std::function<double(std::int64_t)>& value) {
  auto tensor = runtime::HostTensor::make(dtype, std::move(shape));
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, value(i));
  return tensor;
}

fusec::Verdict checked(const Graph& graph, const runtime::HostTensor& x, const std::string& output,
                       const runtime::HostTensor& got) {
  runtime::Values values;
  values.emplace("x", x);
  return fusec::OutputChecker(ir_of(graph), values, without_dims).check(output, got);
}

/// Rows of one value each, and their distance from their mean, which is 0 but for rounding.
Graph from_the_mean() {
  Graph g;
  const Tensor x = g.input("x", f32, {30, 100});
  const Tensor d = x - mean(x, {1}, {.keep_dims = true});
  g.output("above", d > 0.0F);
  g.output("part", d / d);
  g.output("sign", sign(d));
  return g;
}

}  // namespace

TEST_CASE("check: where a difference is 0 but for rounding, every answer to it is right", "[fusec]") {
  const Graph graph = from_the_mean();
  const auto x =
      filled(f32, {30, 100}, [](std::int64_t i) { return 0.1 * (1 + 1.37 * static_cast<double>(i / 100)); });
  for (const bool above : {false, true}) {
    auto got = runtime::HostTensor::make(boolean, {30, 100});
    for (std::int64_t i = 0; i < got.element_count(); ++i) got.set_int(i, above);
    const fusec::Verdict verdict = checked(graph, x, "above", got);
    INFO(verdict.text);
    CHECK(verdict.ok);
  }
  for (const double part : {1.0, static_cast<double>(NAN)}) {
    const fusec::Verdict verdict =
        checked(graph, x, "part", filled(f32, {30, 100}, [&](std::int64_t) { return part; }));
    INFO(verdict.text);
    CHECK(verdict.ok);
    CHECK(verdict.text.find("elements hang on decisions that errors leave open") != std::string::npos);
  }
  for (const double side : {-1.0, 0.0, 1.0})
    CHECK(checked(graph, x, "sign", filled(f32, {30, 100}, [&](std::int64_t) { return side; })).ok);
  CHECK(!checked(graph, x, "sign", filled(f32, {30, 100}, [](std::int64_t) { return 2.0; })).ok);
}

TEST_CASE("check: a difference that no rounding moves off 0 is 0", "[fusec]") {
  // The sum of a hundred halves is exact in any order; the other rows are not.
  const auto x = filled(f32, {30, 100}, [](std::int64_t i) {
    return i < 100 ? 0.5 : 0.1 * (1 + 1.37 * static_cast<double>(i / 100));
  });
  auto got = filled(f32, {30, 100}, [](std::int64_t) { return 0.0; });
  CHECK(checked(from_the_mean(), x, "sign", got).ok);
  got.set(107, 1);
  CHECK(checked(from_the_mean(), x, "sign", got).ok);
  got.set(7, 1);
  CHECK(!checked(from_the_mean(), x, "sign", got).ok);
}

TEST_CASE("check: what a maximum cuts off is the same on any device", "[fusec]") {
  Graph g;
  const Tensor y = sum(g.input("x", f32, {40, 30, 20}), {2});
  g.output("count", sum(convert(maximum(y, 0.0F) > 0.0F, i32), {1}));
  g.output("saturated", sum(convert(maximum(minimum(y, 1.0F), -1.0F) == 1.0F, i32), {1}));
  auto x = runtime::HostTensor::make(f32, {40, 30, 20});
  runtime::random_fill(x, 3, "x", -1, 1);
  for (const double limit : {0.0, 1.0}) {
    auto got = runtime::HostTensor::make(i32, {40});
    for (std::int64_t i = 0; i < 1200; ++i) {
      double total = 0;
      for (std::int64_t k = 20 * i; k < 20 * i + 20; ++k) total += x.get(k);
      got.set_int(i / 30, got.get_int(i / 30) + (total > limit));
    }
    const std::string output = limit == 0 ? "count" : "saturated";
    const fusec::Verdict right = checked(g, x, output, got);
    INFO(right.text);
    CHECK(right.ok);
    CHECK(right.text.find("hang on decisions") == std::string::npos);
    got.set_int(7, got.get_int(7) + 1);
    CHECK(!checked(g, x, output, got).ok);
  }
}

TEST_CASE("check: products that threads begin at 1 lose what one thread does not", "[fusec]") {
  Graph g;
  g.output("p", prod(g.input("x", f32, {3, 40000}), {1}));
  auto x = runtime::HostTensor::make(f32, {3, 40000});
  runtime::random_fill(x, 3, "x", 0, 1);
  for (std::int64_t i = 0; i < x.element_count(); ++i) x.set(i, 1 + 1e-4 * x.get(i));
  for (const std::int64_t each : {40000, 600, 40, 10}) {
    auto got = runtime::HostTensor::make(f32, {3});
    for (std::int64_t row = 0; row < 3; ++row) {
      float product = 1;
      for (std::int64_t i = 0; i < 40000; i += each) {
        float own = 1;
        for (std::int64_t k = i; k < std::min<std::int64_t>(i + each, 40000); ++k)
          own *= static_cast<float>(x.get(40000 * row + k));
        product *= own;
      }
      got.set(row, product);
    }
    const fusec::Verdict right = checked(g, x, "p", got);
    INFO(each << ": " << right.text);
    CHECK(right.ok);
    got.set(1, got.get(1) * 1.02);
    CHECK(!checked(g, x, "p", got).ok);
  }
}

TEST_CASE("check: equal values are equal, however they are rounded", "[fusec]") {
  Graph g;
  const Tensor p = softmax(g.input("x", f32, {16, 40}), 1);
  g.output("count", sum(convert(p >= max(p, {1}, {.keep_dims = true}), i32), {1}));
  auto x = runtime::HostTensor::make(f32, {16, 40});
  runtime::random_fill(x, 3, "x", -2, 2);
  auto got = runtime::HostTensor::make(i32, {16});
  for (std::int64_t i = 0; i < 16; ++i) got.set_int(i, 1);
  const fusec::Verdict right = checked(g, x, "count", got);
  INFO(right.text);
  CHECK(right.ok);
  CHECK(right.text.starts_with("equal to the reference"));
  got.set_int(3, 2);
  CHECK(!checked(g, x, "count", got).ok);
}

TEST_CASE("check: integers that differ from the reference where a right device's may are counted",
          "[fusec]") {
  const auto x = filled(f32, {30, 100}, [](std::int64_t) { return 0.1; });
  auto got = runtime::HostTensor::make(boolean, {30, 100});
  for (std::int64_t i = 0; i < 7; ++i) got.set_int(i, 1);
  const auto exact = runtime::HostTensor::make(boolean, {30, 100});
  const std::string text = checked(from_the_mean(), x, "above", got).text;
  INFO(text);
  CHECK(text.starts_with(checked(from_the_mean(), x, "above", exact).text.starts_with("equal")
                             ? "7 elements are not the reference's"
                             : "2993 elements are not the reference's"));
}

TEST_CASE("check: what is no number for all devices stays none", "[fusec]") {
  Graph g;
  const Tensor p = softmax(g.input("x", f32, {8, 40}), 1);
  g.output("y", p * log(p));
  // One probability of each row is 0, and its logarithm infinite; the others have roundings.
  const double infinity = std::numeric_limits<double>::infinity();
  const auto x = filled(f32, {8, 40}, [&](std::int64_t i) {
    return i % 40 == 3 ? -infinity : std::sin(static_cast<double>(i));
  });
  auto got = filled(f32, {8, 40}, [&](std::int64_t i) {
    double sum = 0;
    for (std::int64_t k = i / 40 * 40; k < i / 40 * 40 + 40; ++k) sum += std::exp(x.get(k));
    return std::exp(x.get(i)) / sum * (x.get(i) - std::log(sum));
  });
  const fusec::Verdict right = checked(g, x, "y", got);
  INFO(right.text);
  CHECK(right.ok);
  got.set(3, 1e22);
  CHECK(!checked(g, x, "y", got).ok);
}

TEST_CASE("check: a dividend beside 0 over a divisor of 0 is infinite", "[fusec]") {
  Graph g;  // the slope of points that all have the same abscissa
  const Tensor x = g.input("x", f32, {300, 40}), y = x * x;
  const Tensor rise = mean(x * y, {1}) - mean(x, {1}) * mean(y, {1});
  g.output("slope", rise / (mean(x * x, {1}) - mean(x, {1}) * mean(x, {1})));
  const auto values =
      filled(f32, {300, 40}, [](std::int64_t i) { return std::log(3.0 + static_cast<double>(i / 40)); });
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double slope : {infinity, -infinity, static_cast<double>(NAN)}) {
    const fusec::Verdict verdict =
        checked(g, values, "slope", filled(f32, {300}, [&](std::int64_t) { return slope; }));
    INFO(verdict.text);
    CHECK(verdict.ok);
  }
}

TEST_CASE("check: what one row leaves open, the others do not", "[fusec]") {
  const Graph graph = from_the_mean();
  const auto value = [](std::int64_t i) { return i < 100 ? 0.1 : std::sin(static_cast<double>(i)); };
  const auto x = filled(f32, {30, 100}, value);
  std::vector<double> means(30);
  for (std::int64_t i = 0; i < 3000; ++i) means[static_cast<std::size_t>(i / 100)] += x.get(i) / 100;
  const auto right = [&](std::int64_t i) {
    return x.get(i) > means[static_cast<std::size_t>(i / 100)] ? 1.0 : -1.0;
  };
  auto got = filled(f32, {30, 100}, right);
  CHECK(checked(graph, x, "sign", got).ok);
  got.set(5, 0);  // of the row that is open
  CHECK(checked(graph, x, "sign", got).ok);
  got.set(205, -right(205));
  const fusec::Verdict wrong = checked(graph, x, "sign", got);
  INFO(wrong.text);
  CHECK(!wrong.ok);
  CHECK(wrong.text.find("[2, 5]") != std::string::npos);
}

TEST_CASE("check: what is rounded to a whole number may be the next one where errors reach it", "[fusec]") {
  Graph g;
  g.output("whole", convert(round(sum(g.input("x", f32, {2000, 4}), {1}) * 1.0e6F), i32));
  auto x = runtime::HostTensor::make(f32, {2000, 4});
  runtime::random_fill(x, 3, "x", -2, 2);
  auto got = runtime::HostTensor::make(i32, {2000});
  for (std::int64_t row = 0; row < 2000; ++row) {
    const auto at = [&](int i) { return static_cast<float>(x.get(4 * row + i)); };
    got.set_int(row, static_cast<std::int64_t>(std::rint(((at(0) + at(2)) + (at(1) + at(3))) * 1.0e6F)));
  }
  CHECK(checked(g, x, "whole", got).ok);
  got.set_int(7, got.get_int(7) + 20);
  CHECK(!checked(g, x, "whole", got).ok);
}

TEST_CASE("check: a tree may bring all terms of one sign together", "[fusec]") {
  Graph g;
  g.output("y", sum(g.input("x", f32, {1024})));
  const auto term = [](std::int64_t i) {
    return (i / 4 % 2 == 0 ? 1.0 : -1.0) * (0x1p22 + 2 * (i * 37 % 61) + 1);
  };
  const auto x = filled(f32, {1024}, term);
  // 4 neighbours a lane, then a butterfly of 32 lanes, 8 times.
  std::vector<float> lanes(32);
  for (std::size_t i = 0; i < 1024; ++i)
    lanes[i / 4 % 32] += static_cast<float>(x.get(static_cast<std::int64_t>(i)));
  for (std::size_t apart : {2U, 4U, 8U, 16U, 1U}) {  // those of one sign first
    std::vector<float> next(32);
    for (std::size_t lane = 0; lane < 32; ++lane) next[lane] = lanes[lane] + lanes[lane ^ apart];
    lanes = next;
  }
  auto got = runtime::HostTensor::make(f32, {});
  got.set(0, static_cast<double>(lanes[0]));
  const fusec::Verdict right = checked(g, x, "y", got);
  INFO(right.text);
  CHECK(right.ok);
  got.set(0, static_cast<double>(lanes[0]) + 0x1p22);  // a term too many
  CHECK(!checked(g, x, "y", got).ok);
}

TEST_CASE("check: sums that no order rounds are what they are", "[fusec]") {
  Graph g;
  g.output("y", sum(g.input("x", f32, {1024})));
  const auto x = filled(f32, {1024}, [](std::int64_t i) { return static_cast<double>(i * 37 % 61 - 30); });
  double total = 0;
  for (std::int64_t i = 0; i < 1024; ++i) total += x.get(i);
  auto got = runtime::HostTensor::make(f32, {});
  got.set(0, total);
  CHECK(checked(g, x, "y", got).ok);
  got.set(0, total + 1);
  CHECK(!checked(g, x, "y", got).ok);
}

TEST_CASE("check: partial sums and products that overflow may be infinite, or no number", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", f32, {8});
  g.output("sum", sum(x));
  g.output("product", prod(x / 2.0e18F));
  const auto big = filled(f32, {8}, [](std::int64_t i) { return i / 2 % 2 == 0 ? 2e38 : -2e38; });
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double value : {0.0, infinity, -infinity, static_cast<double>(NAN)})
    CHECK(checked(g, big, "sum", filled(f32, {}, [&](std::int64_t) { return value; })).ok);
  const auto mixed = filled(f32, {8}, [](std::int64_t i) { return i < 4 ? 2e38 : 0.02; });  // 1e20 and 1e-20
  for (const double value : {1.0, infinity, 0.0, static_cast<double>(NAN)})
    CHECK(checked(g, mixed, "product", filled(f32, {}, [&](std::int64_t) { return value; })).ok);
  CHECK(!checked(g, mixed, "product", filled(f32, {}, [](std::int64_t) { return 100.0; })).ok);
  const auto small = filled(f32, {8}, [](std::int64_t i) { return i < 4 ? 2e18 : -2e18; });
  CHECK(!checked(g, small, "sum", filled(f32, {}, [&](std::int64_t) { return infinity; })).ok);
}

TEST_CASE("check: elements that err far more than others do not hide those", "[fusec]") {
  Graph g;  // a row of one value has a distance from its mean that is all error, which is divided by its own
            // size
  const Tensor x = g.input("x", f32, {64, 100});
  const Tensor d = x - mean(x, {1}, {.keep_dims = true});
  g.output("y", d * rsqrt(mean(d * d, {1}, {.keep_dims = true})));
  const auto value = [](std::int64_t i) { return i < 100 ? 0.1 : std::sin(static_cast<double>(i)); };
  const auto input = filled(f32, {64, 100}, value);
  auto got = runtime::HostTensor::make(f32, {64, 100});
  for (std::int64_t row = 0; row < 64; ++row) {
    double mean = 0, square = 0;
    for (std::int64_t i = 0; i < 100; ++i) mean += input.get(100 * row + i) / 100;
    for (std::int64_t i = 0; i < 100; ++i) square += std::pow(input.get(100 * row + i) - mean, 2) / 100;
    for (std::int64_t i = 0; i < 100; ++i)
      got.set(100 * row + i, row == 0 ? 0 : (input.get(100 * row + i) - mean) / std::sqrt(square));
  }
  const fusec::Verdict right = checked(g, input, "y", got);
  INFO(right.text);
  CHECK(right.ok);
  got.set(1234, got.get(1234) * 1.001);
  CHECK(!checked(g, input, "y", got).ok);
}

TEST_CASE("check: columns that are much larger do not hide what is wrong in the others", "[fusec]") {
  Graph g;
  g.output("y", sum(g.input("x", f32, {256, 40, 50}), {2}));
  auto x = runtime::HostTensor::make(f32, {256, 40, 50});
  runtime::random_fill(x, 3, "x", -1, 1);
  auto got = runtime::HostTensor::make(f32, {256, 40});
  for (std::int64_t i = 0; i < got.element_count(); ++i) {
    double total = 0;
    for (std::int64_t k = 50 * i; k < 50 * i + 50; ++k) {
      if (i % 5 == 0) x.set(k, 1e4 * x.get(k));
      total += x.get(k);
    }
    got.set(i, total);
  }
  // As large as an error of a large column: without this, nothing would be hidden.
  got.set(0, got.get(0) + 0.01);
  const fusec::Verdict right = checked(g, x, "y", got);
  INFO(right.text);
  CHECK(right.ok);
  got.set(21, got.get(21) + 0.01);
  CHECK(!checked(g, x, "y", got).ok);
}

TEST_CASE("check: two i64 that are one double are no constant", "[fusec]") {
  Graph g;
  g.output("y", g.input("x", i64, {2}) + 0);
  auto x = runtime::HostTensor::make(i64, {2});
  x.set_int(0, std::int64_t{1} << 53);
  x.set_int(1, (std::int64_t{1} << 53) + 1);
  CHECK(!checked(g, x, "y", x).bare);
  x.set_int(1, std::int64_t{1} << 53);
  CHECK(checked(g, x, "y", x).text.ends_with("OK, but every element is 9007199254740992"));
}

TEST_CASE("check: one sum by two routes is 0 but for rounding", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", f32, {40, 32});
  const Tensor by_matmul = matmul(x, g.constant(f32, 1.0, {32, 1}));
  g.output("zero", sum(x, {1}, {.keep_dims = true}) - by_matmul);
  auto values = runtime::HostTensor::make(f32, {40, 32});
  runtime::random_fill(values, 3, "x", -2, 2);
  const auto got = filled(f32, {40, 1}, [](std::int64_t i) { return i % 3 == 0 ? 0x1p-21 : 0; });
  const fusec::Verdict right = checked(g, values, "zero", got);
  INFO(right.text);
  CHECK(right.ok);
  CHECK(!checked(g, values, "zero", filled(f32, {40, 1}, [](std::int64_t) { return 1e-3; })).ok);
}

TEST_CASE("check: two open decisions need not be alike", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", f32, {50, 2, 100});
  const Tensor above = sum(x - mean(x, {2}, {.keep_dims = true}), {2}) > 0.0F;
  g.output("differ", reshape(slice(above, 1, 0, 1) != slice(above, 1, 1, 2), {50}));
  const auto x_values =
      filled(f32, {50, 2, 100}, [](std::int64_t i) { return 1 / static_cast<double>(3 + i / 100); });
  for (const bool differ : {false, true}) {
    auto got = runtime::HostTensor::make(boolean, {50});
    for (std::int64_t i = 0; i < 50; ++i) got.set_int(i, differ);
    const fusec::Verdict verdict = checked(g, x_values, "differ", got);
    INFO(verdict.text);
    CHECK(verdict.ok);
    CHECK(verdict.text.find("hang on decisions") != std::string::npos);
  }
}

TEST_CASE("check: a prefix sum whose partial sums overflow may be what it is without them", "[fusec]") {
  Graph g;
  g.output("y", cumulative_sum(g.input("x", f32, {6}), 0));
  const auto x = filled(f32, {6}, [](std::int64_t i) { return i / 2 % 2 == 0 ? 3e38 : -3e38; });
  const double infinity = std::numeric_limits<double>::infinity();
  // 3e38, 6e38, 3e38, 0, 3e38, 6e38 exactly.
  for (const double fourth : {0.0, static_cast<double>(NAN), infinity, -infinity}) {
    auto got = filled(f32, {6}, [&](std::int64_t i) {
      return i == 0 ? 3e38 : i == 1 || i == 5 ? infinity : 3e38;
    });
    got.set(3, fourth);
    const fusec::Verdict verdict = checked(g, x, "y", got);
    INFO(verdict.text);
    CHECK(verdict.ok);
  }
  CHECK(!checked(g, x, "y", filled(f32, {6}, [](std::int64_t) { return 1.0; })).ok);
}

TEST_CASE("check: a sum whose partial sums may overflow rounds as another does", "[fusec]") {
  Graph g;
  g.output("sum", sum(g.input("x", f32, {400})));
  const auto x = filled(f32, {400}, [](std::int64_t i) {
    return i == 399 ? 1e33 : i == 398 ? 0 : i % 2 == 0 ? 3e37 : -3e37;
  });
  // One addition beside 3e37 rounds by up to 1.3e30.
  for (const double error : {1e30, -1e30, 2e31}) {
    const fusec::Verdict verdict =
        checked(g, x, "sum", filled(f32, {}, [&](std::int64_t) { return 1e33 + error; }));
    INFO(verdict.text);
    CHECK(verdict.ok);
  }
  CHECK(!checked(g, x, "sum", filled(f32, {}, [](std::int64_t) { return 1e36; })).ok);
}

TEST_CASE("check: a sum with an infinite term may meet the other infinity", "[fusec]") {
  Graph g;
  g.output("y", sum(g.input("x", f32, {6})));
  const double infinity = std::numeric_limits<double>::infinity();
  const auto x = filled(f32, {6}, [&](std::int64_t i) { return i == 0 ? -infinity : 3e38; });
  for (const double answer : {-infinity, static_cast<double>(NAN)})
    CHECK(checked(g, x, "y", filled(f32, {}, [&](std::int64_t) { return answer; })).ok);
  CHECK(!checked(g, x, "y", filled(f32, {}, [](std::int64_t) { return 0.0; })).ok);
}

TEST_CASE("check: elements that cancelled give others, which are exact, no room", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", f32, {20, 32});
  const Tensor big = x * 1e6F;
  const Tensor cancelled = sum(big + x, {1}) - sum(big, {1});
  const Tensor whole = round(reshape(x, {640}) * 8.0F) + 5.0F;
  g.output("y", concat({whole, cancelled}, 0));
  g.output("side", sign(cancelled));
  auto values = runtime::HostTensor::make(f32, {20, 32});
  runtime::random_fill(values, 5, "x", -1, 1);
  auto got = runtime::HostTensor::make(f32, {660});
  for (std::int64_t i = 0; i < 640; ++i) got.set(i, std::rint(values.get(i) * 8) + 5);
  for (std::int64_t row = 0; row < 20; ++row) {
    double total = 0;
    for (std::int64_t i = 0; i < 32; ++i) total += values.get(32 * row + i);
    got.set(640 + row, std::rint(total));
  }
  const fusec::Verdict right = checked(g, values, "y", got);
  INFO(right.text);
  CHECK(right.ok);
  got.set(17, got.get(17) + 1);
  const fusec::Verdict wrong = checked(g, values, "y", got);
  INFO(wrong.text);
  CHECK(!wrong.ok);
}

TEST_CASE("check: what no rounding takes to 0 leaves no division by 0 open", "[fusec]") {
  Graph g;
  const Tensor x = g.input("x", bf16, {4, 3});
  // Differences that err by more than the denominator, which is 1 or more, is off 0.
  const Tensor e = exp(convert(x * x * x, f32) - max(convert(x * x * x, f32), {1}, {.keep_dims = true}));
  g.output("y", e / sum(e, {1}, {.keep_dims = true}));
  const auto values =
      filled(bf16, {4, 3}, [](std::int64_t i) { return 6 + 0.01 * static_cast<double>(i % 3); });
  const fusec::Verdict verdict =
      checked(g, values, "y", filled(f32, {4, 3}, [](std::int64_t) { return 1.0 / 3; }));
  INFO(verdict.text);
  CHECK(verdict.text.find("hang on decisions") == std::string::npos);
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(!checked(g, values, "y", filled(f32, {4, 3}, [&](std::int64_t) { return infinity; })).ok);
}

}  // namespace fuse
