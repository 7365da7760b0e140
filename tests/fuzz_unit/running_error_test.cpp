// The running error analysis: what it lets through and what it does not.
// SPDX-License-Identifier: Apache-2.0
#include "fuzz/judge/running_error.hpp"

#include <fuse/fuse.hpp>
#include <limits>

#include "base/access.hpp"
#include "eval/bounds/error_bound.hpp"
#include "support/catch.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::fuzz;  // NOLINT
using runtime::HostTensor;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

HostTensor tensor(DType dtype, const std::vector<double>& values) {
  HostTensor result = HostTensor::make(dtype, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) result.set(static_cast<std::int64_t>(i), values[i]);
  return result;
}

struct OneInput {
  explicit OneInput(DType dtype, std::vector<double> values_)
      : values(std::move(values_)), x(g.input("x", dtype, {static_cast<std::int64_t>(values.size())})) {}
  Graph g{"g"};
  std::vector<double> values;
  Tensor x;

  Enclosure of(const Tensor& y) {
    Graph with = g;
    const std::string name = "y";
    g.output(name, y);
    return enclose(ir_of(g), {{"x", tensor(x.dtype(), values)}}, {}).at(name);
  }
};

}  // namespace

TEST_CASE("an op that rounds right leaves no choice", "[fuzz]") {
  OneInput one(f32, {0.1, -3.5, 1e-40, infinity});
  const Enclosure y = one.of((one.x + 0.3) / 7.0 - sqrt(abs(one.x)));
  CHECK(y.exact());
  HostTensor got = y.centre.to_host();
  CHECK(mismatch(y, got).empty());
  // One unit in the last place is a mismatch, as is a zero of the other sign.
  got.set(1, got.get(1) + runtime::ulp_of(got.get(1), f32));
  CHECK(mismatch(y, got).find("the first at [1]") != std::string::npos);
}

TEST_CASE("a NaN, an infinity and the sign of a zero have to match", "[fuzz]") {
  OneInput one(f32, {1.0, -1.0, 2.0});
  const Enclosure y = one.of(select(one.x > 0.0, one.x * 0.0, one.x));
  for (const double wrong : {std::numeric_limits<double>::quiet_NaN(), -0.0, infinity}) {
    HostTensor got = y.centre.to_host();
    got.set(0, wrong);
    INFO(wrong);
    CHECK(!mismatch(y, got).empty());
  }
}

TEST_CASE("an elementary function widens by the table's ulps", "[fuzz]") {
  OneInput one(f32, {0.5, 1.0, -3.0});
  const Enclosure y = one.of(exp(one.x));
  REQUIRE(!y.exact());
  for (const double ulps : {-2.0, 2.0}) {
    HostTensor got = y.centre.to_host();
    got.set(1, got.get(1) + ulps * runtime::ulp_of(got.get(1), f32));
    CHECK(mismatch(y, got).empty());
  }
  for (const double ulps : {-8.0, 8.0}) {
    HostTensor got = y.centre.to_host();
    got.set(1, got.get(1) + ulps * runtime::ulp_of(got.get(1), f32));
    CHECK(!mismatch(y, got).empty());
  }
}

TEST_CASE("a decision that rounding could turn is undecided, others are not", "[fuzz]") {
  OneInput one(f32, {1.0, 2.0, 0.25});
  const Tensor e = exp(one.x);
  const double at = std::exp(1.0);
  const Enclosure y = one.of(select(e > at, one.x, 0.0 - one.x));
  const Shares shares = shares_of(y);
  CHECK(shares.elements == 3);
  CHECK(shares.exact == 2);  // e^1 may lie on either side
  HostTensor got = y.centre.to_host();
  got.set(0, -got.get(0));
  CHECK(mismatch(y, got).empty());
  got.set(1, -got.get(1));
  CHECK(!mismatch(y, got).empty());
}

TEST_CASE("a quotient whose divisor may be 0 is undecided", "[fuzz]") {
  OneInput one(f64, {1.0, 2.0});
  const Tensor zero = exp(one.x) - std::exp(1.0);
  const Enclosure y = one.of(1.0 / zero);
  CHECK(shares_of(y).undecided == 1);
}

TEST_CASE("sums of integers are exact in any order, other sums have gamma(n)", "[fuzz]") {
  OneInput whole(f32, {1, 2, 3, -4, 100});
  CHECK(whole.of(sum(whole.x)).exact());
  OneInput parts(f32, {0.1, 0.2, 0.3, -0.4, 100});
  const Enclosure y = parts.of(sum(parts.x));
  REQUIRE(!y.exact());
  HostTensor got = y.centre.to_host();
  const double value = got.get(0);
  got.set(0, value + runtime::ulp_of(value, f32));
  CHECK(mismatch(y, got).empty());
  got.set(0, value + 0.1);  // an element that was left out
  CHECK(!mismatch(y, got).empty());
  OneInput huge(f32, {3e38, 3e38, -3e38});
  CHECK(shares_of(huge.of(sum(huge.x))).undecided == 1);  // the order decides
}

TEST_CASE("extremes and positions of exact elements leave no choice", "[fuzz]") {
  OneInput one(f32, {0.1, 7.25, -3});
  CHECK(one.of(max(one.x)).exact());
  OneInput close(f32, {1.0, 1.0, -3});
  const Tensor e = exp(close.x);
  const Enclosure where = close.of(argmax(e, 0));
  // Equal operands, but a function may answer them differently in another kernel.
  CHECK(where.least().integer()[0] == 0);
  CHECK(where.greatest().integer()[0] == 1);
}

TEST_CASE("a NaN that is certain stays so through sums, an undecided one does not", "[fuzz]") {
  OneInput one(f32, {std::numeric_limits<double>::quiet_NaN(), 1.0});
  const Enclosure y = one.of(sum(one.x));
  CHECK(y.exact());
  HostTensor got = y.centre.to_host();
  got.set(0, 1.0);
  CHECK(!mismatch(y, got).empty());
}

TEST_CASE("a product of two that overflows is undecided, and what is multiplied by it", "[fuzz]") {
  // One device adds infinity and -infinity, another one, whose products are not rounded, only the one or the
  // other.
  for (const bool multiplied : {false, true}) {
    OneInput one(f64, {1e200, 1e200, -1e200});
    const Tensor left = reshape(slice(one.x, 0, 0, 2), {1, 2}),
                 right = reshape(slice(one.x, 0, 1, 3), {2, 1});
    const Tensor both = matmul(left, right);
    const Enclosure y = one.of(multiplied ? matmul(both, one.g.constant(f64, 2.0, {1, 1})) : both);
    HostTensor got = y.centre.to_host();
    for (const double answer : {infinity, -infinity, std::numeric_limits<double>::quiet_NaN(), 0.0}) {
      got.set(0, answer);
      INFO(answer);
      CHECK(mismatch(y, got).empty());
    }
  }
}

TEST_CASE("a range moves with its element", "[fuzz]") {
  OneInput one(f32, {1.0, 2.0, 3.0, 4.0});
  const Tensor mixed = concat({exp(slice(one.x, 0, 0, 2)), slice(one.x, 0, 2, 4)}, 0);
  const Enclosure y = one.of(transpose(reshape(mixed, {2, 2}), {1, 0}));
  const auto low = y.least().real(), high = y.greatest().real();
  CHECK(low[0] < high[0]);
  CHECK(low[1] == high[1]);
  CHECK(low[2] < high[2]);
  CHECK(low[3] == high[3]);
}
