// SPDX-License-Identifier: Apache-2.0
#include "tensors/host_tensor.hpp"

#include <cmath>
#include <limits>

#include "base/quoting.hpp"
#include "io_support.hpp"
#include "support/catch.hpp"

using namespace fuse;
using fuse::runtime::HostTensor;

namespace {

constexpr std::int64_t largest = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t smallest = std::numeric_limits<std::int64_t>::min();

}  // namespace

TEST_CASE("a made tensor is zeroed and has its size", "[io][host_tensor]") {
  for (const DType type : test::all_dtypes) {
    const HostTensor tensor = HostTensor::make(type, {2, 3});
    REQUIRE(tensor.element_count() == 6);
    REQUIRE(tensor.data.size() == 6 * size_of(type));
    for (std::int64_t i = 0; i < 6; ++i) REQUIRE(tensor.get(i) == 0);
  }
  REQUIRE(HostTensor::make(f32, {}).element_count() == 1);
  REQUIRE(HostTensor::make(f32, {3, 0}).data.empty());
}

TEST_CASE("sizes that do not fit are refused before allocation", "[io][host_tensor]") {
  const auto code = [](std::vector<std::int64_t> shape) {
    const auto error = test::error_of([&] { HostTensor::make(f32, shape); });
    REQUIRE(error);
    return error->code;
  };
  REQUIRE(code({-1}) == ErrorCode::invalid_extent);
  REQUIRE(code({0, -1}) == ErrorCode::invalid_extent);
  REQUIRE(code({largest / 2}) == ErrorCode::invalid_extent);
  REQUIRE(code({std::int64_t{1} << 31, std::int64_t{1} << 31}) == ErrorCode::invalid_extent);
  // A zero does not excuse the strides of the others.
  REQUIRE(code({0, largest, largest}) == ErrorCode::invalid_extent);
  REQUIRE(runtime::checked_element_count(std::vector<std::int64_t>{largest}, boolean) == largest);
  REQUIRE(runtime::checked_element_count(std::vector<std::int64_t>{0, largest}, boolean) == 0);
}

TEST_CASE("set rounds once and saturates", "[io][host_tensor]") {
  const auto stored = [](DType type, double value) {
    HostTensor tensor = HostTensor::make(type, {});
    tensor.set(0, value);
    return tensor.get(0);
  };
  REQUIRE(stored(f64, 0.1) == 0.1);
  REQUIRE(stored(f32, 0.1) == static_cast<double>(0.1f));
  REQUIRE(stored(f16, 65519) == 65504);
  REQUIRE(stored(f16, 65520) == std::numeric_limits<double>::infinity());
  REQUIRE(stored(bf16, 1 + 0x1p-8) == 1);
  // Through f32 this would be a tie, and round down to even.
  REQUIRE(stored(bf16, 1 + 0x1p-8 + 0x1p-40) == 1 + 0x1p-7);
  REQUIRE(std::isnan(stored(bf16, NAN)));
  REQUIRE(stored(i32, 2.5) == 2);
  REQUIRE(stored(i32, -3.5) == -4);
  REQUIRE(stored(i32, 1e300) == 2147483647.0);
  REQUIRE(stored(i32, -std::numeric_limits<double>::infinity()) == -2147483648.0);
  REQUIRE(stored(i64, std::numeric_limits<double>::infinity()) == 0x1p63);
  REQUIRE(stored(i64, NAN) == 0);
  REQUIRE(stored(boolean, -0.25) == 1);
  REQUIRE(stored(boolean, -0.0) == 0);
}

TEST_CASE("integers are exact in i64 and rounded once elsewhere", "[io][host_tensor]") {
  const auto stored = [](DType type, std::int64_t value) {
    HostTensor tensor = HostTensor::make(type, {1});
    tensor.set_int(0, value);
    return tensor;
  };
  for (const std::int64_t value : {smallest, largest, (std::int64_t{1} << 53) + 1, std::int64_t{-1}}) {
    REQUIRE(stored(i64, value).get_int(0) == value);
  }
  REQUIRE(stored(i32, largest).get_int(0) == 2147483647);
  REQUIRE(stored(i32, smallest).get_int(0) == -2147483648ll);
  REQUIRE(stored(boolean, 256).get_int(0) == 1);
  REQUIRE(stored(f32, smallest).get(0) == -0x1p63);
  REQUIRE(stored(f32, largest).get(0) == 0x1p63);
  REQUIRE(stored(f16, largest).get(0) == std::numeric_limits<double>::infinity());
  // Just above a tie of f32 and of bf16; as a double the excess is lost, and the tie would go down to even.
  const std::int64_t above_f32_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 38) + 1;
  REQUIRE(stored(f32, above_f32_tie).get(0) == 0x1p62 + 0x1p39);
  REQUIRE(stored(f32, -above_f32_tie).get(0) == -0x1p62 - 0x1p39);
  const std::int64_t above_bf16_tie = (std::int64_t{1} << 62) + (std::int64_t{1} << 54) + 1;
  REQUIRE(stored(bf16, above_bf16_tie).get(0) == 0x1p62 + 0x1p55);
  REQUIRE(stored(bf16, above_bf16_tie - 1).get(0) == 0x1p62);
}

TEST_CASE("spans check their type and elements their index", "[io][host_tensor]") {
  HostTensor tensor = test::ramp(i64, {4});
  REQUIRE(tensor.span<std::int64_t>()[1] == 12338);
  REQUIRE(test::error_of([&] { tensor.span<double>(); })->code == ErrorCode::dtype_mismatch);
  for (const std::int64_t index : {std::int64_t{-1}, std::int64_t{4}, largest, smallest}) {
    REQUIRE(test::error_of([&] { tensor.get(index); })->kind == ErrorKind::internal);
    REQUIRE(test::error_of([&] { tensor.set(index, 0); })->kind == ErrorKind::internal);
  }
}

TEST_CASE("hostile text is made fit for a message", "[io][host_tensor]") {
  REQUIRE(in_quotes("a\n\x1b") == "'a\\x0a\\x1b'");
  REQUIRE(in_quotes(std::string(100000, 'x')).size() < 300);
  REQUIRE(runtime::type_text(bf16, std::vector<std::int64_t>{4, 8}) == "bf16[4, 8]");
  REQUIRE(runtime::type_text(f32, std::vector<std::int64_t>(9999, 1)).size() < 100);
}
