// How far a right result may lie from the exact evaluation: bounds derived from the arithmetic, not tuned.
// u is the unit roundoff 2^-p of a format of precision p; gamma(n) = n u / (1 - n u) bounds the relative
// error of n roundings in a row (Higham, Accuracy and Stability, lemma 3.1), in whatever order the terms are
// combined. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dtype.hpp>

#include "ir/graph/op.hpp"

namespace fuse::runtime {

/// The spacing of a floating dtype at `value`: that of its binade, or of subnormals; that of the last binade
/// beyond the greatest finite value. NaN for NaN, 0 for integers and bools.
double ulp_of(double value, DType dtype);

/// gamma(n) of a floating dtype; infinity once n u reaches 1; 0 for integers and bools.
double gamma(std::int64_t roundings, DType dtype);

/// One element-wise op on operands that the dtype holds: the table's error in ulps and half an ulp of
/// rounding. For f64 the oracle's own function is up to one ulp off as well. Also one convert to `dtype`.
double elementwise_bound(ir::Op op, double exact_result, DType dtype);

/// A reduction of n elements that accumulates in `dtype`, in any order.
///   reduce_sum: n - 1 additions, and one rounding that makes up for the oracle's: gamma(n) * sum |x|;
///   additions
///     of subnormals are exact. `magnitude` is sum |x|.
///   reduce_prod: the same relative to the product: `magnitude` is |product|. Holds while no partial product
///     leaves the normal range.
///   others select an element: 0.
/// For f64 the oracle errs as much: twice that. A final convert to a narrower dtype adds
/// rounding_bound.
double reduction_bound(ir::Op op, std::int64_t n, double magnitude, DType dtype);

/// A dot product of length k accumulated in `accumulator` in any order, then rounded to `result`: k roundings
/// of products and k - 1 of sums meet a term at most k times: gamma(k) * sum |a b|; a product that underflows
/// loses at most half the least subnormal each; then rounding_bound. With fused multiply-add it errs less.
double matmul_bound(std::int64_t k, double sum_of_magnitudes, double exact_result, DType accumulator,
                    DType result);

/// Rounding to `dtype` something at most `error` away from `exact`: half an ulp at the far end. A value
/// rounded to a narrower dtype than it was computed in is at most error + rounding_bound(exact, error, dtype)
/// away.
double rounding_bound(double exact, double error, DType dtype);

}  // namespace fuse::runtime
