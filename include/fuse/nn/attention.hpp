// Attention: masks, grouped heads, a cache of keys and values, rotary embeddings.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <fuse/compound.hpp>
#include <fuse/graph.hpp>
#include <fuse/nn/normalization.hpp>
#include <limits>
#include <optional>
#include <vector>

namespace fuse {
inline namespace v0 {

/// The lower triangle of the last two dims: what lies above diagonal `diagonal` becomes 0. 0 is the main
/// diagonal, 1 the one above it.
inline Tensor tril(const Arg& x, std::int64_t diagonal = 0) {
  const Compound f("tril", {x});
  const Tensor value = f.tensor(0);
  if (value.rank() < 2) f.fail(ErrorCode::shape_mismatch, "x is no matrix", "x is [.., rows, columns]");
  const std::int64_t rank = value.rank();
  const Tensor row = f.iota(i64, value.dims(), rank - 2);
  const Tensor column = f.iota(i64, value.dims(), rank - 1);
  return select(column - row <= diagonal, value, 0);
}

/// The upper triangle: what lies below diagonal `diagonal` becomes 0.
inline Tensor triu(const Arg& x, std::int64_t diagonal = 0) {
  const Compound f("triu", {x});
  const Tensor value = f.tensor(0);
  if (value.rank() < 2) f.fail(ErrorCode::shape_mismatch, "x is no matrix", "x is [.., rows, columns]");
  const std::int64_t rank = value.rank();
  const Tensor row = f.iota(i64, value.dims(), rank - 2);
  const Tensor column = f.iota(i64, value.dims(), rank - 1);
  return select(column - row >= diagonal, value, 0);
}

/// Options of attention.
struct AttentionOptions {
  /// A query attends the keys up to its own position only.
  bool causal = false;
  /// The position of the first query among the keys, for `causal`: a number, or an i32 or i64 scalar that is
  /// known when the program runs. Without it, queries and keys have one length.
  std::optional<Arg> offset{};
  /// bool: where a query attends a key; or of a floating type: what is added to the scores. It broadcasts to
  /// [batch, heads, queries, keys], from the right. A query that may attend no key gets NaN.
  Tensor mask{};
  /// The factor of the scores; 1 / sqrt(width) if empty.
  std::optional<double> scale{};
};

/// softmax(q k^T scale) v. q [batch, heads, queries, width], k [batch, groups, keys, width], v [batch,
/// groups, keys, value width]; `heads` is a multiple of `groups`, and heads that stand together share a group
/// (grouped-query attention). Result [batch, heads, queries, value width]. The weights are rounded once,
/// before they meet v.
inline Tensor attention(const Arg& q, const Arg& k, const Arg& v, const AttentionOptions& options = {}) {
  std::vector<Arg> args = {q, k, v};
  const bool masked = options.mask.valid(), moved = options.offset && !options.offset->is_number();
  if (masked) args.emplace_back(options.mask, q.at());
  if (moved) args.emplace_back(options.offset->tensor(), q.at());
  const Compound f("attention", std::move(args));
  const Tensor query = f.real(0), key = f.real(1), value = f.real(2);
  for (std::size_t i = 0; i < 3; ++i) {
    f.check_rank(i, 4);
    if (f.tensor(i).dtype() != query.dtype()) {
      f.fail(ErrorCode::dtype_mismatch, "q, k and v have different types", "convert them to one type");
    }
    f.check_equal("the batch extents", query.dim(0), f.tensor(i).dim(0));
  }
  const Dim heads = query.dim(1), groups = key.dim(1);
  const bool grouped = heads != groups;
  if (grouped && (groups.is(0) || !f.known_divisible(heads, groups))) {
    f.fail(ErrorCode::shape_mismatch,
           "the heads of q, " + heads.to_string() + ", are not known to be a multiple of those of k, " +
               groups.to_string(),
           "heads that share keys and values stand together: 8 heads of q and 2 of k make groups of 4");
  }
  f.check_equal("the numbers of heads", groups, value.dim(1));
  f.check_equal("the widths of q and k", query.dim(3), key.dim(3));
  f.check_equal("the lengths of k and v", key.dim(2), value.dim(2));
  if (options.offset && !options.causal) {
    f.fail(ErrorCode::invalid_argument, "there is an offset, and no causal mask",
           "set .causal = true as well");
  }
  if (moved && (f.tensor(f.size() - 1).rank() != 0 || !is_integer(f.tensor(f.size() - 1).dtype()))) {
    f.fail(ErrorCode::invalid_argument,
           "the offset is " + f.tensor(f.size() - 1).type_string() + ", and no scalar of an integer type",
           "make it an input i64[]");
  }
  if (options.offset && !moved && (!options.offset->is_integer() || options.offset->integer() < 0)) {
    f.fail(ErrorCode::invalid_argument, "the offset is no whole number of keys",
           "it is the position of the first query among the keys");
  }
  if (options.causal && !options.offset) {
    f.check_equal("the lengths of q and k, equal in causal attention,", query.dim(2), key.dim(2));
  }

  // The heads of a group are more rows of one product.
  const Dim rows = grouped ? heads / groups * query.dim(2) : query.dim(2);
  const Tensor by_group = grouped ? reshape(query, {query.dim(0), groups, rows, query.dim(3)}) : query;
  Tensor scores = matmul(by_group, key, {.transpose_b = true, .result = f.wide()});
  if (grouped) scores = reshape(scores, {query.dim(0), heads, query.dim(2), key.dim(2)});
  const Dim width = query.dim(3);
  if (options.scale) {
    scores = scores * *options.scale;
  } else if (width.is_constant()) {
    scores = scores * (1 / __builtin_sqrt(static_cast<double>(width.constant())));
  } else {
    scores = scores / sqrt(f.dim_size(width, f.wide()));
  }
  constexpr double never = -std::numeric_limits<double>::infinity();
  if (options.causal) {
    const ScopeGuard part = f.part("mask");
    const std::int64_t most = key.dim(2).max();
    const DType counter = !options.offset && most <= std::numeric_limits<std::int32_t>::max() ? i32 : i64;
    Tensor row = f.iota(counter, scores.dims(), 2);
    const Tensor column = f.iota(counter, scores.dims(), 3);
    // An offset beyond the keys hides none of them, as their number does.
    if (moved) {
      row = row + minimum(convert(f.tensor(f.size() - 1), i64), most);
    } else if (options.offset) {
      row = row + (options.offset->integer() < most ? options.offset->integer() : most);
    }
    scores = select(column <= row, scores, never);
  }
  if (masked) {
    const ScopeGuard part = f.part("mask");
    const Tensor mask = f.tensor(3);
    if (mask.dtype() != boolean && !is_floating(mask.dtype())) {
      f.fail(ErrorCode::dtype_mismatch, "the mask is " + mask.type_string(),
             "a mask is bool, as mask != 0 is, or of a floating type, which is added");
    }
    bool fits = mask.rank() <= 4;
    for (std::int64_t i = 1; fits && i <= mask.rank(); ++i) {
      const Dim own = mask.dim(-i), whole = scores.dim(-i);
      fits = own.is(1) || own == whole || !own.is_constant() || !whole.is_constant();
    }
    if (!fits) {
      f.fail(ErrorCode::shape_mismatch, "the mask does not broadcast to the scores, " + scores.type_string(),
             "a mask is [queries, keys], with heads and batch before them where they matter, or 1 for any of "
             "these");
    }
    const Tensor spread = broadcast_to(mask, scores.dims());
    scores = mask.dtype() == boolean ? select(spread, scores, never) : scores + convert(spread, f.wide());
  }
  Tensor weights = f.rounded(softmax(scores));
  if (!grouped) return matmul(weights, value);
  weights = reshape(weights, {query.dim(0), groups, rows, key.dim(2)});
  return reshape(matmul(weights, value), {query.dim(0), heads, query.dim(2), value.dim(3)});
}

/// @deprecated Write attention(q, k, v, {.causal = true}).
template <std::same_as<bool> B>
[[deprecated("write attention(q, k, v, {.causal = true})")]] Tensor attention(const Arg& q, const Arg& k,
                                                                              const Arg& v, B causal) {
  return attention(q, k, v, AttentionOptions{.causal = causal});
}

/// A cache [batch, heads, length, width] with `values` [batch, heads, new, width] from `position` on, a
/// number or an i32 or i64 scalar. A position at which they do not all fit counts as the last one at which
/// they do. Make the result an output with the cache as its donor, and only what is new is written:
/// `g.output("keys_out", cache_append(keys, k, position), keys)`.
inline Tensor cache_append(const Arg& cache, const Arg& values, const Arg& position) {
  const Compound f("cache_append", {cache, values, position});
  f.check_rank(0, 4);
  f.check_rank(1, 4);
  f.check_equal("the batch extents", f.tensor(0).dim(0), f.tensor(1).dim(0));
  f.check_equal("the numbers of heads", f.tensor(0).dim(1), f.tensor(1).dim(1));
  f.check_equal("the widths", f.tensor(0).dim(3), f.tensor(1).dim(3));
  return dynamic_update_slice(f.tensor(0), f.tensor(1), {0, 0, position, 0});
}

/// Options of rope.
struct RopeOptions {
  double base = 10000;       ///< the longest period is 2 pi base
  bool interleaved = false;  ///< pairs are (x[2i], x[2i + 1]), as in RoFormer; else (x[i], x[i + width / 2])
};
/// Rotary position embedding: pairs of the last dim are turned by an angle of the position. x [.., width], of
/// an even number; positions broadcast to the other dims: [length] for x [batch, heads, length, width].
/// Angles are f32, or f64 for f64.
inline Tensor rope(const Arg& x, const Arg& positions, const RopeOptions& options = {}) {
  const Compound f("rope", {x, positions});
  const Tensor wide = f.widened(0);
  const std::int64_t last = f.axis(-1);
  const Dim width = wide.dim(last);
  if (!width.is_constant() || width.constant() < 2 || width.constant() % 2 != 0) {
    f.fail(ErrorCode::invalid_argument,
           "the last extent, " + width.to_string() + ", is no even number from 2 on",
           "x is [.., width], and the width is known and even");
  }
  if (!(options.base > 0) || options.base > std::numeric_limits<double>::max()) {
    f.fail(ErrorCode::invalid_argument, "the base is no finite number above 0", "the usual one is 10000");
  }
  const Tensor at = f.tensor(1);
  bool fits = at.dtype() != boolean && at.rank() < wide.rank();
  for (std::int64_t i = 1; fits && i <= at.rank(); ++i) {
    const Dim own = at.dim(-i), whole = wide.dim(-i - 1);
    fits = own.is(1) || own == whole || !own.is_constant() || !whole.is_constant();
  }
  if (!fits) {
    f.fail(ErrorCode::shape_mismatch, "the positions do not broadcast to the dims of x before its last",
           "for x [batch, heads, length, width] positions are [length], numbers of any type");
  }
  const std::int64_t half_width = width.constant() / 2;
  const double step = -2 * __builtin_log(options.base) / static_cast<double>(width.constant());
  const Tensor frequency = exp(f.iota(f.wide(), {half_width}, 0) * step);
  const Tensor position = convert(unsqueeze(at, -1), f.wide());
  const Tensor angle = position * frequency;
  const Tensor cosine = cos(angle), sine = sin(angle);
  std::vector<Dim> dims = wide.dims();
  if (options.interleaved) {
    dims.back() = half_width;
    dims.push_back(2);
    const Tensor pairs = reshape(wide, dims);
    const std::vector<Tensor> parts = split(pairs, 2, last + 1);
    const Tensor a = squeeze(parts[0], last + 1), b = squeeze(parts[1], last + 1);
    const Tensor first = a * cosine - b * sine;
    const Tensor second = b * cosine + a * sine;
    return f.rounded(reshape(stack({first, second}, last + 1), wide.dims()));
  }
  const std::vector<Tensor> parts = split(wide, 2, last);
  const Tensor first = parts[0] * cosine - parts[1] * sine;
  const Tensor second = parts[1] * cosine + parts[0] * sine;
  return f.rounded(concat({first, second}, last));
}

}  // namespace v0
}  // namespace fuse
