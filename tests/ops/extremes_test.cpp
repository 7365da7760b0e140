// Maxima and minima: a NaN wins, and +0 is greater than -0, in every form, whatever the order.
// SPDX-License-Identifier: Apache-2.0
#include <random>

#include "support/op_sweep.hpp"

using namespace fuse;        // NOLINT
using namespace fuse::test;  // NOLINT

namespace {

const std::vector<DType> real_types = {f64, f32, f16, bf16};

double least_of(DType dtype) {
  return dtype == f64 ? 0x1p-1074 : dtype == f32 ? 0x1p-149 : dtype == f16 ? 0x1p-24 : 0x1p-133;
}

/// The result itself, and its reciprocal, which shows the sign of a zero.
void expect_bits(OpSweep& sweep, const std::string& what, const Tensor& value) {
  sweep.expect_exact(what, value);
  sweep.expect_exact("the reciprocal of " + what, 1.0 / value);
}

HostTensor drawn_from(const std::vector<double>& values, DType dtype, const Shape& shape, unsigned seed) {
  std::mt19937 random(seed);
  HostTensor tensor = HostTensor::make(dtype, shape);
  for (std::int64_t i = 0; i < tensor.element_count(); ++i) tensor.set(i, values[random() % values.size()]);
  return tensor;
}

struct ExtremeCase {
  Shape shape;
  std::vector<std::int64_t> dims;
};

/// Some lanes a row, a warp a row, a block a row, a block a row in two walks, a cluster a row, columns, all
/// in two launches, mixed dims.
const std::vector<ExtremeCase> extreme_cases = {{{70, 7}, {1}},   {{40, 65}, {1}},   {{40, 1025}, {1}},
                                                {{6, 9000}, {1}}, {{3, 70000}, {1}}, {{37, 65}, {0}},
                                                {{40000}, {0}},   {{2, 3, 40}, {0}}, {{4, 5, 6}, {0, 2}}};

}  // namespace

TEST_CASE("ops: max, min and clamp of every pair of hard values, in both orders", "[device]") {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  OpSweep sweep("extremes");
  for (const DType dtype : real_types) {
    const double tiny = least_of(dtype);
    const std::vector<double> hard = {0.0, -0.0, NAN, infinity, -infinity, 1, -1, tiny, -tiny, 3 * tiny};
    const auto n = static_cast<std::int64_t>(hard.size());
    HostTensor a = HostTensor::make(dtype, {n, 1}), b = HostTensor::make(dtype, {n});
    for (std::int64_t i = 0; i < n; ++i) {
      a.set(i, hard[static_cast<std::size_t>(i)]);
      b.set(i, hard[static_cast<std::size_t>(i)]);
    }
    const Tensor x = sweep.input(a), y = sweep.input(b);
    const std::string type(to_string(dtype));
    expect_bits(sweep, "max " + type, maximum(x, y));
    expect_bits(sweep, "max " + type + ", swapped", maximum(y, x));
    expect_bits(sweep, "min " + type, minimum(x, y));
    expect_bits(sweep, "min " + type + ", swapped", minimum(y, x));
    for (const double bound : {0.0, -0.0, tiny}) {
      expect_bits(sweep, "clamp " + type, clamp(y, x, sweep.graph().constant(dtype, bound, {n})));
      expect_bits(sweep, "relu " + type, maximum(y, bound));
    }
  }
  sweep.run_on_test_devices();
}

TEST_CASE("ops: reductions of max and min find the zero, the NaN and the subnormal, wherever they are",
          "[device]") {
  for (const ExtremeCase& item : extreme_cases) {
    OpSweep sweep("extreme");
    unsigned seed = 1;
    for (const DType dtype : real_types) {
      const double tiny = least_of(dtype);
      // Zeros of the other sign, NaN and subnormals are rare, so that rows differ in whether they have one.
      const auto many = static_cast<std::size_t>(item.shape.back());
      std::vector<double> zeros(many, -0.0), subnormals(many, -0.0), nans(many, -1.0);
      zeros[0] = 0.0, zeros[1] = -1.0;
      subnormals[0] = tiny, subnormals[1] = 0.0;
      nans[0] = NAN;
      for (const auto& values : {zeros, subnormals, nans}) {
        const Tensor x = sweep.input(drawn_from(values, dtype, item.shape, seed));
        const std::string what = describe(ir::Op::reduce_max, dtype, item.shape);
        INFO("seed " << seed);
        ++seed;
        expect_bits(sweep, what, max(x, item.dims));
        expect_bits(sweep, what + ", mirrored", min(-x, item.dims));
        if (item.dims.size() == 1) sweep.expect_exact("argmax " + what, argmax(x, item.dims[0]));
        if (item.dims.size() == 1) sweep.expect_exact("argmin " + what, argmin(-x, item.dims[0]));
      }
    }
    sweep.run_on_test_devices();
  }
}
