// Counter-based random numbers: the generator's published answers, one numbering on every device, dropout.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "eval/bounds/philox.hpp"
#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

Tensor scalar(OpSweep& sweep, std::int64_t value) {
  HostTensor tensor = HostTensor::make(i64, {});
  tensor.set_int(0, value);
  return sweep.input(tensor);
}

std::vector<double> draw(const Graph& g, std::int64_t seed, std::int64_t offset) {
  const auto number = [](std::int64_t value) {
    HostTensor tensor = HostTensor::make(i64, {});
    tensor.set_int(0, value);
    return tensor;
  };
  Session session(compile(g, test_device()));
  session.set("seed", number(seed).data);
  session.set("offset", number(offset).data);
  session.run();
  HostTensor got = HostTensor::make(f32, {1000});
  session.get("y", got.data);
  std::vector<double> values;
  for (std::int64_t i = 0; i < 1000; ++i) values.push_back(got.get(i));
  return values;
}

}  // namespace

TEST_CASE("philox gives the answers that its authors published", "[ops][device]") {
  using runtime::reference::philox;
  using runtime::reference::Words;
  CHECK(philox({0, 0, 0, 0}, 0, 0) == Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8});
  constexpr std::uint32_t ones = 0xffffffff;
  CHECK(philox({ones, ones, ones, ones}, ones, ones) ==
        Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd});
  CHECK(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, 0xa4093822, 0x299f31d0) ==
        Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1});
}

TEST_CASE("ops: random numbers are the same on every device, wherever they are computed", "[ops][device]") {
  OpSweep sweep("random");
  const std::int64_t large = std::int64_t{0x123456789abcdef};
  for (const auto& [seed_value, offset_value] :
       {std::pair(0L, 0L), std::pair(-1L, 7L), std::pair(large, -large)}) {
    const Tensor seed = scalar(sweep, seed_value), offset = scalar(sweep, offset_value);
    for (const DType dtype : {f32, f64}) {
      const Tensor u = random_uniform(dtype, {37, 5}, seed, offset);
      sweep.expect_exact("plain", u);
      sweep.expect_exact("transposed", transpose(u, {1, 0}) * 2);
      sweep.expect_exact("its maximum", max(u, {0}));
    }
    sweep.expect_exact("empty", random_uniform(f32, {0}, seed, offset));
    sweep.expect_exact("a number as the seed", random_uniform(f32, {9}, seed, 3));
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: neighbours that a thread draws at once have the numbers of their positions",
          "[ops][device]") {
  OpSweep sweep("neighbours");
  const Tensor seed = scalar(sweep, -3), offset = scalar(sweep, 11);
  constexpr std::int64_t many = 1 << 21;  // so many that each thread has several neighbours
  sweep.expect_exact("f32", random_uniform(f32, {many}, seed, offset));
  sweep.expect_exact("f64", random_uniform(f64, {many}, seed, offset));
  sweep.expect_exact("bf16", convert(random_uniform(f32, {many}, seed, offset), bf16));
  sweep.expect_exact("row maxima", max(random_uniform(f32, {64, 1024}, seed, offset), {1}));
  sweep.run_on_test_devices();
}

TEST_CASE("ops: seed, offset and stream each change the numbers", "[ops][device]") {
  const auto make = [](int skipped) {
    Graph g("draw");
    const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
    for (int i = 0; i < skipped; ++i) random_uniform(f32, {1}, seed, offset);
    g.output("y", random_uniform(f32, {1000}, seed, offset));
    return g;
  };
  const std::vector<double> first = draw(make(0), 1, 2);
  CHECK(first == draw(make(0), 1, 2));
  CHECK(first != draw(make(0), 2, 2));
  CHECK(first != draw(make(0), 1, 3));
  CHECK(first != draw(make(1), 1, 2));
  // A parsed graph keeps its streams.
  CHECK(draw(make(1), 1, 2) == draw(Graph::parse(make(1).to_string()), 1, 2));
  // 1000 uniform numbers: the mean has deviation sqrt(1/12/1000) = 0.0092; each tenth holds 100 +- 9.5.
  double sum = 0;
  std::vector<int> tenths(10);
  for (const double value : first) {
    REQUIRE(value >= 0);
    REQUIRE(value < 1);
    sum += value;
    ++tenths[static_cast<std::size_t>(value * 10)];
  }
  CHECK(std::fabs(sum / 1000 - 0.5) < 6 * 0.0092);
  for (const int count : tenths) CHECK(std::abs(count - 100) < 6 * 9.5);
}

TEST_CASE("ops: equal draws of one stream are one, two streams stay two", "[ops][device]") {
  Graph g("streams");
  const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
  g.output("y", random_uniform(f32, {1000}, seed, offset) - random_uniform(f32, {1000}, seed, offset));
  const std::vector<double> difference = draw(g, 5, 6);
  CHECK(std::count(difference.begin(), difference.end(), 0.0) < 10);
}

TEST_CASE("dropout keeps its share, scaled, and draws anew with the offset", "[functions][device]") {
  Graph g("dropout");
  const Tensor seed = g.input("seed", i64, {}), offset = g.input("offset", i64, {});
  g.output("y", dropout(g.constant(f32, 3.0, {1000}), 0.25, seed, offset));
  const std::vector<double> kept = draw(g, 1, 1);
  CHECK(kept != draw(g, 1, 2));
  std::int64_t count = 0;
  for (const double value : kept) {
    CHECK((value == 0 || value == 4));
    count += value == 4;
  }
  CHECK(std::abs(count - 750) < 6 * 14);  // deviation sqrt(1000 * 0.75 * 0.25) = 13.7
  const Tensor x = g.input("x", f16, {10});
  CHECK(dropout(x, 0, seed, offset).dtype() == f16);
  CHECK_THROWS_WITH(dropout(x, 1, seed, offset), Catch::Contains("p is 1"));
}

TEST_CASE("ops: what a draw refuses", "[ops][device]") {
  Graph g("refused");
  const Tensor seed = g.input("seed", i64, {}), narrow = g.input("narrow", i32, {}),
               many = g.input("many", i64, {2});
  CHECK_THROWS_WITH(random_uniform(f16, {2}, seed, seed), Catch::Contains("the result is f16"));
  CHECK_THROWS_WITH(random_uniform(f32, {2}, narrow, seed), Catch::Contains("the seed is i32"));
  CHECK_THROWS_WITH(random_uniform(f32, {2}, seed, many), Catch::Contains("not a scalar"));
}
