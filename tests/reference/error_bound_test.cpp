// The spacing of each format, and the bounds built on it.
// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/error_bound.hpp"

#include "reference/reference_support.hpp"

namespace fuse::test {

using runtime::elementwise_bound;
using runtime::matmul_bound;
using runtime::reduction_bound;
using runtime::ulp_of;

TEST_CASE("reference: ulp_of at ordinary values, binade edges and subnormals") {
  REQUIRE(ulp_of(1, f64) == 0x1p-52);
  REQUIRE(ulp_of(1, f32) == 0x1p-23);
  REQUIRE(ulp_of(-1.5, f16) == 0x1p-10);
  REQUIRE(ulp_of(1, bf16) == 0x1p-7);
  REQUIRE(ulp_of(2, f32) == 0x1p-22);
  REQUIRE(ulp_of(std::nextafter(2.0, 0.0), f32) == 0x1p-23);
  REQUIRE(ulp_of(0, f32) == 0x1p-149);
  REQUIRE(ulp_of(1e-42, f32) == 0x1p-149);
  REQUIRE(ulp_of(0, f16) == 0x1p-24);
  REQUIRE(ulp_of(0x1p-15, f16) == 0x1p-24);
  REQUIRE(ulp_of(0x1p-14, f16) == 0x1p-24);
  REQUIRE(ulp_of(0, bf16) == 0x1p-133);
  REQUIRE(ulp_of(5e-324, f64) == 5e-324);
  REQUIRE(ulp_of(1e30, f16) == 32);  // as at 65504
  REQUIRE(ulp_of(inf, f32) == 0x1p104);
  REQUIRE(std::isnan(ulp_of(nan, f32)));
  REQUIRE(ulp_of(5, i32) == 0);
  for (const double x : {0.7, 3e-40, 1e38, 6e-8}) {
    const float f = static_cast<float>(x);
    REQUIRE(ulp_of(f, f32) == static_cast<double>(std::nextafter(f, INFINITY)) - static_cast<double>(f));
  }
}

TEST_CASE("reference: bounds of single ops come from the table") {
  REQUIRE(elementwise_bound(Op::add, 1, f32) == 0.5 * 0x1p-23);
  REQUIRE(elementwise_bound(Op::exp, 1, f32) == 2.5 * 0x1p-23);
  REQUIRE(elementwise_bound(Op::exp, 1, f64) == 3.5 * 0x1p-52);
  REQUIRE(elementwise_bound(Op::convert, 1, f16) == 0.5 * 0x1p-10);
  REQUIRE(elementwise_bound(Op::add, 1, i32) == 0);
}

TEST_CASE("reference: bounds of sums grow with length and size") {
  const double u = 0x1p-24;
  REQUIRE(reduction_bound(Op::reduce_sum, 100, 10, f32) == Approx(100 * u * 10).epsilon(1e-4));
  REQUIRE(reduction_bound(Op::reduce_sum, 100, 0, f32) == 0);
  REQUIRE(reduction_bound(Op::reduce_sum, 0, 0, f32) == 0);
  REQUIRE(reduction_bound(Op::reduce_prod, 10, 2, f32) == Approx(10 * u * 2).epsilon(1e-4));
  REQUIRE(reduction_bound(Op::reduce_max, 100, 10, f32) == 0);
  REQUIRE(reduction_bound(Op::argmax, 100, 10, f32) == 0);
  REQUIRE(reduction_bound(Op::reduce_sum, 1 << 24, 1, f32) == inf);
  REQUIRE(reduction_bound(Op::reduce_sum, 4, 1, f64) == Approx(2 * 4 * 0x1p-53));
  REQUIRE(reduction_bound(Op::reduce_sum, 4, 1, i64) == 0);
}

TEST_CASE("reference: the bound of a matmul holds the rounding of its result") {
  const double u = 0x1p-24;
  REQUIRE(matmul_bound(64, 3, 1, f32, f32) == Approx(64 * u * 3).epsilon(1e-4));
  REQUIRE(matmul_bound(64, 3, 1.5, f32, f16) == Approx(64 * u * 3 + 0x1p-11).epsilon(1e-4));
  REQUIRE(matmul_bound(0, 0, 0, f32, f32) == 0);
  REQUIRE(matmul_bound(64, 3, 1, i32, i32) == 0);
  // The error may push the value over a binade, where the spacing doubles.
  REQUIRE(runtime::rounding_bound(1.999, 0.01, bf16) == 0.5 * 0x1p-6);
}

}  // namespace fuse::test
