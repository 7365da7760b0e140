// What the same-type form rounds and the exact form does not.
// SPDX-License-Identifier: Apache-2.0
#include "reference/reference_support.hpp"

namespace fuse::test {
namespace {

using runtime::reference::round_bf16;
using runtime::reference::round_f16;

double convert_one(DType from, double x, DType to, Precision precision) {
  return run_op(Op::convert, {reals(from, {1}, {x})}, {}, to, {1}, precision).get(0);
}

std::int64_t to_integer(DType to, double x) {
  const auto exact = run_op(Op::convert, {reals(f64, {1}, {x})}, {}, to, {1}, Precision::exact);
  const auto same_type = run_op(Op::convert, {reals(f64, {1}, {x})}, {}, to, {1}, Precision::same_type);
  REQUIRE(exact.integer()[0] == same_type.integer()[0]);
  return exact.integer()[0];
}

// Every value of a 16-bit type, its neighbourhood and every halfway case, against the host type.
template <class Half>
void check_all(double (*round)(double)) {
  const auto check = [&](double x) {
    if (!same(round(x), static_cast<double>(Half(x)))) {
      CAPTURE(x, round(x), static_cast<double>(Half(x)));
      FAIL("differs from the host type");
    }
  };
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    Half value, next;
    value.bits = static_cast<std::uint16_t>(bits);
    next.bits = static_cast<std::uint16_t>(bits + 1);
    const double a = static_cast<double>(value), b = static_cast<double>(next);
    check(a);
    const double middle = a / 2 + b / 2;
    if (!std::isfinite(middle)) continue;
    check(middle);
    check(std::nextafter(middle, inf));
    check(std::nextafter(middle, -inf));
  }
}

}  // namespace

TEST_CASE("reference: rounding to 16 bits agrees with the host types everywhere") {
  check_all<half>(round_f16);
  check_all<bfloat16>(round_bf16);
}

TEST_CASE("reference: widening 16-bit inputs is exact") {
  for (const DType dtype : {f16, bf16}) {
    HostTensor all = HostTensor::make(dtype, {0x10000});
    for (std::size_t i = 0; i < 0x10000; ++i) {
      all.data[2 * i] = static_cast<std::byte>(i & 255);
      all.data[2 * i + 1] = static_cast<std::byte>(i >> 8);
    }
    const ReferenceTensor wide = ReferenceTensor::from_host(all);
    for (std::int64_t i = 0; i < 0x10000; ++i) {
      if (!same(wide.real()[static_cast<std::size_t>(i)], all.get(i)))
        FAIL("bits " << i << " " << to_string(dtype));
    }
  }
}

TEST_CASE("reference: halfway cases go to even in the same-type form and stay in the exact one") {
  // f16 has 10 stored bits: 1 + 2^-11 is halfway to 1 + 2^-10, 1 + 3 * 2^-11 halfway above it.
  REQUIRE(convert_one(f32, 1 + 0x1p-11, f16, Precision::same_type) == 1);
  REQUIRE(convert_one(f32, 1 + 3 * 0x1p-11, f16, Precision::same_type) == 1 + 0x1p-9);
  REQUIRE(convert_one(f32, 1 + 0x1p-11, f16, Precision::exact) == 1 + 0x1p-11);
  REQUIRE(convert_one(f32, 1 + 0x1p-8, bf16, Precision::same_type) == 1);
  REQUIRE(convert_one(f32, 1 + 3 * 0x1p-8, bf16, Precision::same_type) == 1 + 0x1p-6);
  REQUIRE(convert_one(f32, 65519, f16, Precision::same_type) == 65504);
  REQUIRE(convert_one(f32, 65520, f16, Precision::same_type) == inf);
  REQUIRE(convert_one(f32, 65520, f16, Precision::exact) == 65520);
  REQUIRE(convert_one(f32, 0x1p-25, f16, Precision::same_type) == 0);  // half the least subnormal
  REQUIRE(convert_one(f32, 0x1.8p-25, f16, Precision::same_type) == 0x1p-24);
  REQUIRE(std::isnan(convert_one(f32, nan, bf16, Precision::same_type)));
  REQUIRE(std::signbit(convert_one(f32, -0.0, f16, Precision::same_type)));
  // From f64 once: through f32 this would round down to the tie and then to even.
  REQUIRE(convert_one(f64, 1 + 0x1p-11 + 0x1p-40, f16, Precision::same_type) == 1 + 0x1p-10);
}

TEST_CASE("reference: an exact output is rounded once, by to_host") {
  Case test;
  const NodeId x = test.input(reals(f16, {1}, {1}));
  const NodeId wide = test.add(Op::convert, {x}, {}, type_of(f32, {1}));
  const NodeId small =
      test.add(Op::constant, {}, ir::ConstantAttr{.real = 0x1p-11 + 0x1p-30}, type_of(f32, {1}));
  const NodeId sum = test.add(Op::add, {wide, small}, {}, type_of(f32, {1}));
  test.output(test.add(Op::convert, {sum}, {}, type_of(f16, {1})));
  const ReferenceTensor exact = test.run(Precision::exact);
  REQUIRE(exact.real()[0] == 1 + 0x1p-11 + 0x1p-30);
  REQUIRE(exact.to_host().dtype == f16);
  REQUIRE(exact.to_host().get(0) == 1 + 0x1p-10);
  REQUIRE(exact.to_host(f64).get(0) == 1 + 0x1p-11 + 0x1p-30);
  // f32 drops 2^-30, and the tie then goes to even.
  REQUIRE(test.run(Precision::same_type).real()[0] == 1);
}

TEST_CASE("reference: floats to integers truncate, saturate and take NaN for 0") {
  REQUIRE(to_integer(i64, -2.9) == -2);
  REQUIRE(to_integer(i64, 1e30) == std::numeric_limits<std::int64_t>::max());
  REQUIRE(to_integer(i64, -inf) == std::numeric_limits<std::int64_t>::min());
  REQUIRE(to_integer(i64, 0x1p63) == std::numeric_limits<std::int64_t>::max());
  REQUIRE(to_integer(i64, 0x1p62) == 1LL << 62);
  REQUIRE(to_integer(i64, nan) == 0);
  REQUIRE(to_integer(i32, 2147483647.9) == 2147483647);
  REQUIRE(to_integer(i32, 1e10) == 2147483647);
  REQUIRE(to_integer(i32, -2147483648.9) == -2147483648LL);
  REQUIRE(to_integer(i32, -1e10) == -2147483648LL);
  REQUIRE(to_integer(i32, nan) == 0);
  REQUIRE(to_integer(boolean, 0.5) == 1);
  REQUIRE(to_integer(boolean, -0.0) == 0);
  REQUIRE(to_integer(boolean, nan) == 1);
}

TEST_CASE("reference: integers convert with one rounding") {
  const auto convert = [](DType from, std::int64_t x, DType to, Precision precision) {
    return run_op(Op::convert, {integers(from, {1}, {x})}, {}, to, {1}, precision);
  };
  constexpr auto same_type = Precision::same_type;
  REQUIRE(convert(i32, 16777217, f32, same_type).real()[0] == 16777216);
  REQUIRE(convert(i32, 16777217, f32, Precision::exact).real()[0] == 16777217);
  // Through double this would become a tie of f32 and go down.
  const std::int64_t beyond = (1LL << 60) + (1LL << 36) + 1;
  REQUIRE(convert(i64, beyond, f32, same_type).real()[0] == 0x1p60 + 0x1p37);
  REQUIRE(convert(i64, -beyond, f32, same_type).real()[0] == -(0x1p60 + 0x1p37));
  REQUIRE(convert(i64, (1LL << 60) + (1LL << 52) + 1, bf16, same_type).real()[0] == 0x1p60 + 0x1p53);
  REQUIRE(convert(i32, 2049, f16, same_type).real()[0] == 2048);
  REQUIRE(convert(i64, (1LL << 32) + 5, i32, same_type).integer()[0] == 5);
  REQUIRE(convert(i64, 1LL << 31, i32, Precision::exact).integer()[0] == -(1LL << 31));
  REQUIRE(convert(i32, -7, i64, same_type).integer()[0] == -7);
  REQUIRE(convert(i32, -7, boolean, same_type).integer()[0] == 1);
  REQUIRE(convert(boolean, 1, f64, same_type).real()[0] == 1);
  REQUIRE(convert(boolean, 1, i64, same_type).integer()[0] == 1);
}

TEST_CASE("reference: f32 arithmetic in the same-type form is that of float") {
  const HostTensor a = noise(f32, {5000}, 1), b = noise(f32, {5000}, 2);
  const auto run = [&](Op op) { return list(run_op(op, {a, b}, {}, f32, {5000}, Precision::same_type)); };
  const auto sum = run(Op::add), product = run(Op::mul), quotient = run(Op::div);
  for (std::int64_t i = 0; i < 5000; ++i) {
    const float x = static_cast<float>(a.get(i)), y = static_cast<float>(b.get(i));
    const auto at = static_cast<std::size_t>(i);
    REQUIRE(sum[at] == static_cast<double>(x + y));
    REQUIRE(product[at] == static_cast<double>(x * y));
    REQUIRE(quotient[at] == static_cast<double>(x / y));
  }
}

}  // namespace fuse::test
