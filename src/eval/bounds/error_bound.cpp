// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/error_bound.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuse::runtime {
namespace {

struct Format {
  int precision;       ///< significant bits, the implicit one too
  int least_exponent;  ///< the exponent of the least normal value
};

Format format_of(DType dtype) {
  switch (dtype) {
    case DType::f64:
      return {53, -1022};
    case DType::f16:
      return {11, -14};
    case DType::bf16:
      return {8, -126};
    default:
      return {24, -126};
  }
}

}  // namespace

double ulp_of(double value, DType dtype) {
  if (!is_floating(dtype)) return 0;
  if (std::isnan(value)) return value;
  const auto [precision, least] = format_of(dtype);
  const int greatest = 1 - least;
  int exponent = greatest;
  if (value == 0) {
    exponent = least;
  } else if (std::isfinite(value)) {
    exponent = std::clamp(std::ilogb(value), least, greatest);
  }
  return std::ldexp(1.0, exponent - precision + 1);
}

double gamma(std::int64_t roundings, DType dtype) {
  if (!is_floating(dtype) || roundings <= 0) return 0;
  const double nu = std::ldexp(static_cast<double>(roundings), -format_of(dtype).precision);
  return nu < 1 ? nu / (1 - nu) : std::numeric_limits<double>::infinity();
}

double elementwise_bound(ir::Op op, double exact_result, DType dtype) {
  const int table = ir::info(op).ulp;
  const double oracle = dtype == f64 && table > 0 ? 1 : 0;
  return (table + 0.5 + oracle) * ulp_of(exact_result, dtype);
}

double reduction_bound(ir::Op op, std::int64_t n, double magnitude, DType dtype) {
  const ir::Op combine = ir::info(op).combine;
  const bool selects =
      ir::info(op).identity == ir::Identity::none || (combine != ir::Op::add && combine != ir::Op::mul);
  if (selects || magnitude == 0) return 0;
  return (dtype == f64 ? 2 : 1) * gamma(n, dtype) * magnitude;
}

double rounding_bound(double exact, double error, DType dtype) {
  return 0.5 * ulp_of(std::fabs(exact) + error, dtype);
}

double matmul_bound(std::int64_t k, double sum_of_magnitudes, double exact_result, DType accumulator,
                    DType result) {
  if (!is_floating(accumulator)) return 0;
  double error = sum_of_magnitudes > 0 ? gamma(k, accumulator) * sum_of_magnitudes : 0;
  error += 0.5 * static_cast<double>(k) * ulp_of(0, accumulator);
  if (accumulator == f64) error *= 2;  // the oracle's own
  return result == accumulator ? error : error + rounding_bound(exact_result, error, result);
}

}  // namespace fuse::runtime
