// Normalisations: softmax, norms, variance. Floating tensors; f16 and bf16 are computed in f32 and rounded
// once, to the type of the first argument. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/compound.hpp>
#include <fuse/graph.hpp>
#include <string>
#include <vector>

namespace fuse {

namespace detail {

/// x - max(x): exp of it neither overflows nor is 0 everywhere.
inline Tensor shifted(const Tensor& x, std::int64_t axis) { return x - along(max(x, {axis}), x, axis); }

/// For the library itself: log(softmax(x)) along an axis, in the type of x.
inline Tensor log_probabilities(const Tensor& x, std::int64_t axis) {
  const Tensor z = shifted(x, axis);
  return z - along(log(sum(exp(z), axis)), x, axis);
}

/// Checks argument i of a function, a scale or a shift: one value for each element of the last dim.
inline void check_row(const Compound& f, std::size_t i) {
  f.check_rank(i, 1);
  f.check_equal("the last extent of x and the extent of argument " + std::to_string(i + 1),
                f.tensor(0).dim(f.axis(-1)), f.tensor(i).dim(0));
}

/// Argument i, [channels], over the dims of x, [batch, channels, ..].
inline Tensor by_channel(const Compound& f, std::size_t i, const Tensor& x) {
  f.check_rank(i, 1);
  f.check_equal("the channels of x and the extent of argument " + std::to_string(i + 1), x.dim(1),
                f.tensor(i).dim(0));
  return broadcast_in_dim(f.widened(i), x.dims(), {1});
}

/// x of rows [.., n] with mean 0 and variance 1 along each.
inline Tensor normalized(const Tensor& x, double epsilon) {
  const std::int64_t last = x.rank() - 1;
  const Tensor centred = x - along(mean(x, last), x, last);
  // The mean of squared differences: E[x^2] - E[x]^2 would cancel where the mean is large.
  const Tensor scale = rsqrt(mean(centred * centred, last) + epsilon);
  return centred * along(scale, x, last);
}

}  // namespace detail

inline namespace v0 {

/// exp(x) / sum(exp(x)) along an axis
inline Tensor softmax(const Arg& x, std::int64_t axis = -1) {
  const Compound f("softmax", {x});
  axis = f.axis(axis);
  const Tensor e = exp(detail::shifted(f.widened(0), axis));
  return f.rounded(e / along(sum(e, axis), e, axis));
}

/// log(softmax(x)), which does not lose small probabilities
inline Tensor log_softmax(const Arg& x, std::int64_t axis = -1) {
  const Compound f("log_softmax", {x});
  return f.rounded(detail::log_probabilities(f.widened(0), f.axis(axis)));
}

/// log(sum(exp(x))) over the axes (all when none is named), without overflow
inline Tensor logsumexp(const Arg& x, const Axes& axes = {}, ReduceOptions options = {}) {
  const Compound f("logsumexp", {x});
  const Tensor wide = f.widened(0);
  const std::vector<std::int64_t> over = f.axes(axes);
  const Tensor most = max(wide, over, {.keep_dims = true});
  const Tensor base = select(is_inf(most), 0, most);  // rows of -inf alone: -inf, and not a NaN
  const Tensor result = log(sum(exp(wide - base), over, {.keep_dims = true})) + base;
  return f.rounded(options.keep_dims || over.empty() ? result : squeeze(result, over));
}

/// Options of `var`.
struct VarOptions {
  bool keep_dims = false;  ///< the reduced dims stay, with extent 1
  std::int64_t correction =
      0;  ///< the sum of squares is divided by n - correction: 1 for a sample's variance
};
/// The variance over the axes (all when none is named): the mean of the squared differences from the mean.
inline Tensor var(const Arg& x, const Axes& axes = {}, const VarOptions& options = {}) {
  const Compound f("var", {x});
  const Tensor wide = f.widened(0);
  const std::vector<std::int64_t> over = f.axes(axes);
  const Tensor centred = wide - mean(wide, over, {.keep_dims = true});
  const Tensor squares = centred * centred;
  if (options.correction == 0) return f.rounded(mean(squares, over, {.keep_dims = options.keep_dims}));
  Dim count = 1;
  for (const std::int64_t axis : over) count = count * wide.dim(axis);
  const Tensor total = sum(squares, over, {.keep_dims = options.keep_dims});
  if (count.is_constant()) {
    return f.rounded(total / static_cast<double>(count.constant() > options.correction
                                                     ? count.constant() - options.correction
                                                     : 0));
  }
  return f.rounded(total /
                   maximum(f.dim_size(count, f.wide()) - static_cast<double>(options.correction), 0.0));
}

/// Normalises over the last dim; gamma and beta have its extent.
inline Tensor layer_norm(const Arg& x, const Arg& gamma, const Arg& beta, double epsilon = 1e-5) {
  const Compound f("layer_norm", {x, gamma, beta});
  const std::int64_t last = f.axis(-1);
  detail::check_row(f, 1);
  detail::check_row(f, 2);
  const Tensor wide = f.widened(0);
  const auto centred = [&] {
    const ScopeGuard part = f.part("mean");
    return wide - along(mean(wide, last), wide, last);
  }();
  // The mean of squared differences: E[x^2] - E[x]^2 would cancel where the mean is large.
  const auto scale = [&] {
    const ScopeGuard part = f.part("var");
    return rsqrt(mean(centred * centred, last) + epsilon);
  }();
  const Tensor normal = centred * along(scale, wide, last);
  const Tensor scaled = normal * f.widened(1);
  return f.rounded(scaled + f.widened(2));
}

/// x / sqrt(mean(x^2) + epsilon) over the last dim, times gamma, which has its extent
inline Tensor rms_norm(const Arg& x, const Arg& gamma, double epsilon = 1e-6) {
  const Compound f("rms_norm", {x, gamma});
  const std::int64_t last = f.axis(-1);
  detail::check_row(f, 1);
  const Tensor wide = f.widened(0);
  const Tensor scale = rsqrt(mean(wide * wide, last) + epsilon);
  const Tensor normal = wide * along(scale, wide, last);
  return f.rounded(normal * f.widened(1));
}

/// A batch norm at inference. x [batch, channels, ..]; gamma, beta, mean and variance [channels].
inline Tensor batch_norm(const Arg& x, const Arg& gamma, const Arg& beta, const Arg& mean,
                         const Arg& variance, double epsilon = 1e-5) {
  const Compound f("batch_norm", {x, gamma, beta, mean, variance});
  const Tensor wide = f.widened(0);
  if (wide.rank() < 2) {
    f.fail(ErrorCode::shape_mismatch, "x has no channels", "x is [batch, channels, ..]");
  }
  const Tensor centred = wide - detail::by_channel(f, 3, wide);
  const Tensor scale = rsqrt(detail::by_channel(f, 4, wide) + epsilon);
  const Tensor normal = centred * scale;
  const Tensor scaled = normal * detail::by_channel(f, 1, wide);
  return f.rounded(scaled + detail::by_channel(f, 2, wide));
}

/// Normalises each group of channels of each element of the batch. x [batch, channels, ..]; gamma and beta
/// [channels], a multiple of `groups`.
inline Tensor group_norm(const Arg& x, std::int64_t groups, const Arg& gamma, const Arg& beta,
                         double epsilon = 1e-5) {
  const Compound f("group_norm", {x, gamma, beta});
  const Tensor wide = f.widened(0);
  if (wide.rank() < 2) {
    f.fail(ErrorCode::shape_mismatch, "x has no channels", "x is [batch, channels, ..]");
  }
  const Dim channels = wide.dim(1);
  if (groups < 1 || !f.known_divisible(channels, groups)) {
    f.fail(ErrorCode::invalid_argument,
           "the channels, " + channels.to_string() + ", are not known to be a multiple of " +
               std::to_string(groups),
           "name a number of groups that divides the channels");
  }
  Dim extent = channels / groups;
  for (std::int64_t i = 2; i < wide.rank(); ++i) extent = extent * wide.dim(i);
  const Tensor rows = reshape(wide, {wide.dim(0), groups, extent});
  const Tensor normal = reshape(detail::normalized(rows, epsilon), wide.dims());
  const Tensor scaled = normal * detail::by_channel(f, 1, wide);
  return f.rounded(scaled + detail::by_channel(f, 2, wide));
}

/// Normalises each channel of each element of the batch. x [batch, channels, ..]; gamma and beta [channels].
inline Tensor instance_norm(const Arg& x, const Arg& gamma, const Arg& beta, double epsilon = 1e-5) {
  const Compound f("instance_norm", {x, gamma, beta});
  const Tensor wide = f.widened(0);
  if (wide.rank() < 3) {
    f.fail(ErrorCode::shape_mismatch, "x has nothing to normalise over",
           "x is [batch, channels, ..], of rank 3 or more");
  }
  const Tensor rows = flatten(wide, 2);
  const Tensor normal = reshape(detail::normalized(rows, epsilon), wide.dims());
  const Tensor scaled = normal * detail::by_channel(f, 1, wide);
  return f.rounded(scaled + detail::by_channel(f, 2, wide));
}

}  // namespace v0
}  // namespace fuse
