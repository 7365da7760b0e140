// SPDX-License-Identifier: Apache-2.0
#include "tensors/compare.hpp"

#include <cmath>
#include <limits>

#include "io_support.hpp"
#include "support/catch.hpp"
#include "support/tensor_compare.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;

namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

HostTensor of(DType type, const std::vector<double>& values) {
  HostTensor tensor = HostTensor::make(type, {static_cast<std::int64_t>(values.size())});
  for (std::size_t i = 0; i < values.size(); ++i) tensor.set(static_cast<std::int64_t>(i), values[i]);
  return tensor;
}

}  // namespace

TEST_CASE("errors within the bound pass and the worst is named", "[io][compare]") {
  const HostTensor exact = of(f64, {1, 2, 4, -8}), got = of(f32, {1, 2.25, 4, -8.5});
  const CompareResult loose = compare(got, exact, 0.25, 0.125);
  require_match(loose);
  REQUIRE(loose.max_abs == 0.5);
  REQUIRE(loose.max_rel == 0.125);
  REQUIRE(loose.worst_index == 1);  // 0.25 of 0.5, against 0.5 of 1.25
  REQUIRE(loose.max_bound_ratio == 0.5);
  const CompareResult tight = compare(got, exact, 0.3, 0);
  REQUIRE(tight.mismatches == 1);
  REQUIRE_FALSE(tight.ok());
  REQUIRE(tight.worst_index == 3);
  REQUIRE(tight.text ==
          "1 of 4 elements of f32[4] beyond the bound; worst at [3]: got -8.5, exact -8, error 0.5, bound "
          "0.3 (1.67 of it)");
  // The bound itself is allowed.
  REQUIRE(compare(got, exact, 0.5, 0).ok());
  REQUIRE(compare(got, exact, [](std::size_t i, double) { return i % 2 ? 0.5 : 0.0; }).ok());
  REQUIRE(compare(got, exact, [](std::size_t, double) { return NAN; }).mismatches == 2);
}

TEST_CASE("NaN equals NaN and infinities must match", "[io][compare]") {
  const HostTensor special = of(f32, {NAN, infinity, -infinity, -0.0});
  REQUIRE(compare(special, of(f64, {-NAN, infinity, -infinity, 0.0}), 0, 0).ok());
  REQUIRE(compare(special, special, 0, 1).ok());
  for (std::size_t i = 0; i < 4; ++i) {
    std::vector<double> values = {NAN, infinity, -infinity, 0};
    values[i] = i == 1 ? -infinity : i == 2 ? 1e30 : i == 3 ? NAN : 5;
    for (const double abs : {0.0, 1e300, infinity}) {
      const CompareResult result = compare(of(f32, values), special, abs, 0);
      REQUIRE(result.mismatches == 1);
      REQUIRE(result.worst_index == i);
      REQUIRE(result.max_abs == infinity);
      REQUIRE(result.max_bound_ratio == infinity);
    }
  }
}

TEST_CASE("integers are compared beyond what a double holds", "[io][compare]") {
  HostTensor a = HostTensor::make(i64, {1}), b = a;
  a.set_int(0, (std::int64_t{1} << 60) + 1);
  b.set_int(0, std::int64_t{1} << 60);
  REQUIRE(compare(a, b, 0, 0).mismatches == 1);
  REQUIRE(compare(a, b, 0, 0).max_abs == 1);
  REQUIRE(compare(a, b, 1, 0).ok());
  a.set_int(0, std::numeric_limits<std::int64_t>::max());
  b.set_int(0, std::numeric_limits<std::int64_t>::min());
  REQUIRE(compare(a, b, 0, 0).max_abs == 0x1p64);
  REQUIRE(compare(of(boolean, {1, 0}), of(boolean, {1, 1}), 0, 0).worst_index == 1);
}

TEST_CASE("shapes must agree and positions are spelled in them", "[io][compare]") {
  const CompareResult shapes = compare(of(f32, {1, 2}), of(f32, {1}), infinity, 0);
  REQUIRE(shapes.mismatches == 1);
  REQUIRE(shapes.text == "shapes differ: got f32[2], exact f32[1]");
  HostTensor got = HostTensor::make(f32, {2, 3, 4}), exact = got;
  got.set(23, 1);
  REQUIRE(compare(got, exact, 0, 0).text.find("worst at [1, 2, 3]: got 1, exact 0") != std::string::npos);
  REQUIRE(compare(HostTensor::make(f32, {0}), HostTensor::make(f32, {0}), 0, 0).ok());
  REQUIRE(compare(HostTensor::make(f32, {}), HostTensor::make(f32, {}), 0, 0).ok());
  exact.data.pop_back();
  REQUIRE(compare(got, exact, 0, 0).mismatches == 1);
}
