// SPDX-License-Identifier: Apache-2.0
#include "tensors/random_fill.hpp"

#include <array>
#include <cmath>
#include <limits>

#include "io_support.hpp"
#include "support/catch.hpp"

using namespace fuse;
using namespace fuse::test;
using runtime::HostTensor;

namespace {

HostTensor filled(DType type, std::int64_t count, double low, double high, std::uint64_t seed = 1,
                  std::string_view name = "x") {
  HostTensor tensor = HostTensor::make(type, {count});
  runtime::random_fill(tensor, seed, name, low, high);
  return tensor;
}

}  // namespace

TEST_CASE("the same seed and name give the same values, whatever the shape", "[io][random]") {
  for (const DType type : all_dtypes) {
    const HostTensor a = filled(type, 1000, -100, 100);
    REQUIRE((a.data == filled(type, 1000, -100, 100).data));
    REQUIRE_FALSE((a.data == filled(type, 1000, -100, 100, 2).data));
    REQUIRE_FALSE((a.data == filled(type, 1000, -100, 100, 1, "y").data));
    const HostTensor prefix = filled(type, 10, -100, 100);
    REQUIRE(std::equal(prefix.data.begin(), prefix.data.end(), a.data.begin()));
  }
}

TEST_CASE("random values are the same on every platform", "[io][random]") {
  // Golden values of this generator: a change here changes every recorded result of a user.
  const HostTensor a = filled(i64, 3, -0x1p63, 0x1p63, 42, "golden");
  REQUIRE(a.get_int(0) == 840861260255335064);
  REQUIRE(a.get_int(1) == -4209848649890209729);
  REQUIRE(a.get_int(2) == -6191368818037707956);
  const HostTensor b = filled(f64, 2, 0, 1, 42, "golden");
  REQUIRE(b.get(0) == 0x1.1756adb8e5d02p-1);
  REQUIRE(b.get(1) == 0x1.164e73d4a48b8p-2);
}

TEST_CASE("floats lie in their interval, end excluded, and fill it evenly", "[io][random]") {
  for (const DType type : {f64, f32, f16, bf16}) {
    const std::int64_t count = 40000;
    const HostTensor tensor = filled(type, count, -1, 3);
    std::array<int, 8> histogram{};
    for (std::int64_t i = 0; i < count; ++i) {
      const double value = tensor.get(i);
      REQUIRE((value >= -1 && value < 3));
      ++histogram[static_cast<std::size_t>((value + 1) * 2)];
    }
    // 5000 expected, a standard deviation of 66; bf16 near 3 loses the last 1/256 to the excluded end.
    for (const int n : histogram) REQUIRE(std::abs(n - 5000) < 400);
  }
}

TEST_CASE("integers cover their interval, end excluded, and are fair", "[io][random]") {
  for (const DType type : {i32, i64}) {
    const HostTensor tensor = filled(type, 30000, -1.5, 1.5);
    std::array<int, 3> histogram{};
    for (std::int64_t i = 0; i < 30000; ++i) {
      const std::int64_t value = tensor.get_int(i);
      REQUIRE((value >= -1 && value <= 1));
      ++histogram[static_cast<std::size_t>(value + 1)];
    }
    for (const int n : histogram) REQUIRE(std::abs(n - 10000) < 500);
  }
  const HostTensor single = filled(i32, 100, 3, 4);
  for (std::int64_t i = 0; i < 100; ++i) REQUIRE(single.get_int(i) == 3);
  // Wider than the dtype: all of it, both signs.
  const HostTensor wide = filled(i32, 1000, -1e300, 1e300);
  bool negative = false, large = false;
  for (std::int64_t i = 0; i < 1000; ++i) {
    negative |= wide.get_int(i) < -1000000000;
    large |= wide.get_int(i) > 1000000000;
  }
  REQUIRE((negative && large));
  REQUIRE(filled(i64, 1, 0x1p60, 0x1p60).get_int(0) == std::int64_t{1} << 60);
}

TEST_CASE("bools are fair and 0 or 1", "[io][random]") {
  const HostTensor tensor = filled(boolean, 20000, 5, 5);
  int ones = 0;
  for (const std::uint8_t value : tensor.span<std::uint8_t>()) {
    REQUIRE(value <= 1);
    ones += value;
  }
  REQUIRE(std::abs(ones - 10000) < 500);
}

TEST_CASE("bounds that make no sense are refused", "[io][random]") {
  const auto code = [](DType type, double low, double high) {
    const auto error = error_of([&] { filled(type, 1, low, high); });
    REQUIRE(error);
    return error->code;
  };
  REQUIRE(code(f32, 1, 0) == ErrorCode::invalid_argument);
  REQUIRE(code(f32, NAN, 0) == ErrorCode::invalid_argument);
  REQUIRE(code(f64, 0, INFINITY) == ErrorCode::invalid_argument);
  REQUIRE(code(f16, 0, 1e6) == ErrorCode::invalid_argument);
  REQUIRE(code(i32, 0.25, 0.75) == ErrorCode::invalid_argument);
  REQUIRE(code(i32, 0x1p31, 0x1p32) == ErrorCode::invalid_argument);
  REQUIRE(code(i32, -0x1p33, -0x1p31) == ErrorCode::invalid_argument);
  REQUIRE(code(i64, 0x1p63, 0x1p64) == ErrorCode::invalid_argument);
  REQUIRE(code(i64, -0x1p64, -0x1p63) == ErrorCode::invalid_argument);
  const double huge = std::numeric_limits<double>::max();
  const HostTensor full = filled(f64, 100, -huge, huge);
  for (const double value : full.span<double>()) REQUIRE(std::isfinite(value));
  REQUIRE(filled(f32, 1, 7, 7).get(0) == 7);
  // Nothing of bf16 lies inside.
  REQUIRE(filled(bf16, 1, 1.001, 1.002).get(0) == 1);
}

TEST_CASE("normal values have their mean and deviation", "[io][random]") {
  for (const DType type : {f64, f32, f16, bf16}) {
    HostTensor tensor = HostTensor::make(type, {40000});
    runtime::random_fill_normal(tensor, 9, "n", 2);
    double sum = 0, squares = 0;
    int beyond_two = 0;
    for (std::int64_t i = 0; i < 40000; ++i) {
      const double value = tensor.get(i);
      REQUIRE(std::isfinite(value));
      sum += value;
      squares += value * value;
      beyond_two += std::fabs(value) > 4;
    }
    REQUIRE(std::fabs(sum / 40000) < 0.05);
    REQUIRE(std::fabs(squares / 40000 - 4) < 0.15);
    REQUIRE(std::abs(beyond_two - 1820) < 200);  // 4.55%
  }
  HostTensor ints = HostTensor::make(i32, {1}), floats = HostTensor::make(f32, {1});
  REQUIRE(error_of([&] { runtime::random_fill_normal(ints, 0, "n", 1); })->code == ErrorCode::dtype_mismatch);
  REQUIRE(error_of([&] { runtime::random_fill_normal(floats, 0, "n", -1); })->code ==
          ErrorCode::invalid_argument);
  REQUIRE(error_of([&] { runtime::random_fill_normal(floats, 0, "n", NAN); })->code ==
          ErrorCode::invalid_argument);
}
