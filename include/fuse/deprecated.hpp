// Forms of earlier versions, for one more version: each compiles with a warning that says what to write now,
// but for max and min of two values, whose names mean something else now. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <fuse/graph.hpp>
#include <optional>

namespace fuse {
inline namespace v0 {

/// @deprecated Does not compile: write maximum(a, b) for two values, max(x, {axis}) along an axis.
template <std::convertible_to<Arg> A, std::convertible_to<Arg> B>
Tensor max(const A&, const B&) {
  static_assert(
      sizeof(A) == 0,
      "write maximum(a, b) for the larger of two elements, max(x, {axis}) for the largest along an axis");
  return {};
}
/// @deprecated Does not compile: write minimum(a, b) for two values, min(x, {axis}) along an axis.
template <std::convertible_to<Arg> A, std::convertible_to<Arg> B>
Tensor min(const A&, const B&) {
  static_assert(
      sizeof(A) == 0,
      "write minimum(a, b) for the smaller of two elements, min(x, {axis}) for the smallest along an axis");
  return {};
}

/// @deprecated Write max(x, {axis}).
[[deprecated("write max(x, {axis})")]] inline Tensor reduce_max(const Arg& x, const Axes& axes = {},
                                                                ReduceOptions options = {}) {
  return max(x, axes, options);
}
/// @deprecated Write min(x, {axis}).
[[deprecated("write min(x, {axis})")]] inline Tensor reduce_min(const Arg& x, const Axes& axes = {},
                                                                ReduceOptions options = {}) {
  return min(x, axes, options);
}

// Templates, since `{}` and numbers must not become these booleans.
/// @deprecated Write sum(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write sum(x, axes, {.keep_dims = true})")]] Tensor sum(const Arg& x, const Axes& axes,
                                                                     B keep_dims) {
  return sum(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write prod(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write prod(x, axes, {.keep_dims = true})")]] Tensor prod(const Arg& x, const Axes& axes,
                                                                       B keep_dims) {
  return prod(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write max(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write max(x, axes, {.keep_dims = true})")]] Tensor reduce_max(const Arg& x, const Axes& axes,
                                                                            B keep_dims) {
  return max(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write min(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write min(x, axes, {.keep_dims = true})")]] Tensor reduce_min(const Arg& x, const Axes& axes,
                                                                            B keep_dims) {
  return min(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write any(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write any(x, axes, {.keep_dims = true})")]] Tensor any(const Arg& x, const Axes& axes,
                                                                     B keep_dims) {
  return any(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write all(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write all(x, axes, {.keep_dims = true})")]] Tensor all(const Arg& x, const Axes& axes,
                                                                     B keep_dims) {
  return all(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write mean(x, axes, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write mean(x, axes, {.keep_dims = true})")]] Tensor mean(const Arg& x, const Axes& axes,
                                                                       B keep_dims) {
  return mean(x, axes, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write argmax(x, axis, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write argmax(x, axis, {.keep_dims = true})")]] Tensor argmax(const Arg& x, std::int64_t axis,
                                                                           B keep_dims) {
  return argmax(x, axis, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write argmin(x, axis, {.keep_dims = true}).
template <std::same_as<bool> B>
[[deprecated("write argmin(x, axis, {.keep_dims = true})")]] Tensor argmin(const Arg& x, std::int64_t axis,
                                                                           B keep_dims) {
  return argmin(x, axis, ReduceOptions{.keep_dims = keep_dims});
}
/// @deprecated Write cumulative_sum(x, axis, {.exclusive = true}).
template <std::same_as<bool> B>
[[deprecated("write cumulative_sum(x, axis, {.exclusive = true})")]] Tensor cumulative_sum(
    const Arg& x, std::int64_t axis, B exclusive, bool reverse = false) {
  return cumulative_sum(x, axis, ScanOptions{.exclusive = exclusive, .reverse = reverse});
}
/// @deprecated Write matmul(a, b, {.transpose_b = true}).
template <std::same_as<bool> B>
[[deprecated("write matmul(a, b, {.transpose_b = true})")]] Tensor matmul(
    const Arg& a, const Arg& b, B transpose_a, bool transpose_b = false,
    std::optional<DType> result = std::nullopt) {
  return matmul(a, b,
                MatmulOptions{.transpose_a = transpose_a, .transpose_b = transpose_b, .result = result});
}

}  // namespace v0
}  // namespace fuse
