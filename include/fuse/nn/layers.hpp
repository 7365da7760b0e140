// What models are made of besides activations and norms: linear layers, embeddings, losses, dropout.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/compound.hpp>
#include <fuse/graph.hpp>
#include <fuse/nn/normalization.hpp>
#include <string>
#include <vector>

namespace fuse {
inline namespace v0 {

/// How the weight of a linear layer lies in memory.
enum class WeightLayout : std::uint8_t {
  in_out,  ///< [in, out]: x times weight
  out_in,  ///< [out, in], as PyTorch has it: x times the weight's transpose
};
/// Options of `linear`.
struct LinearOptions {
  WeightLayout layout = WeightLayout::in_out;  ///< how the weight lies in memory
};

}  // namespace v0

namespace detail {

/// The type to count classes in: an i8 would begin anew at 128.
inline DType counter_for(DType index) { return size_of(index) < 4 ? i64 : index; }

/// For the library itself.
inline void check_share(const Compound& f, double p) {
  if (p >= 0 && p < 1) return;
  f.fail(ErrorCode::invalid_argument, "p is " + std::to_string(p), "p is the share to drop: 0 <= p < 1");
}

/// For the library itself.
inline Tensor linear(const Compound& f, const LinearOptions& options) {
  const Tensor x = f.real(0), weight = f.real(1);
  const bool has_bias = f.size() > 2, turned = options.layout == WeightLayout::out_in;
  f.check_rank(1, 2);
  std::vector<Dim> dims = x.dims();
  const Dim in = weight.dim(turned ? 1 : 0), out = weight.dim(turned ? 0 : 1);
  f.check_equal(
      turned ? "the last extents of x and of the weight" : "the last extent of x and the first of the weight",
      dims[static_cast<std::size_t>(f.axis(-1))], in);
  dims.pop_back();
  const Tensor rows = reshape(x, {product(dims), in});
  // With a bias, the product stays in f32 until the bias is added: one rounding, as without.
  Tensor y = matmul(rows, weight, {.transpose_b = turned, .result = has_bias ? f.wide() : x.dtype()});
  if (has_bias) {
    f.check_rank(2, 1);
    f.check_equal("the extents of the bias and of the weight", f.tensor(2).dim(0), out);
    y = f.rounded(y + f.widened(2));
  }
  dims.push_back(out);
  return reshape(y, dims);
}

}  // namespace detail

inline namespace v0 {

/// x [.., in] times a weight: one matmul over the flattened leading dims; [.., out].
inline Tensor linear(const Arg& x, const Arg& weight, const LinearOptions& options = {}) {
  return detail::linear(Compound("linear", {x, weight}), options);
}
/// As above, plus bias [out], added before the one rounding.
inline Tensor linear(const Arg& x, const Arg& weight, const Arg& bias, const LinearOptions& options = {}) {
  return detail::linear(Compound("linear", {x, weight, bias}), options);
}

/// Rows of table [vocabulary, width] at the indices: indices.dims + [width]. An index out of range is
/// clamped.
inline Tensor embedding(const Arg& table, const Arg& indices) {
  const Compound f("embedding", {table, indices});
  f.check_rank(0, 2);
  (void)f.integer(1, "indices");
  return gather(table, indices, 0);
}

/// 1 at the index, 0 elsewhere: indices.dims + [classes]. A row whose index is out of range is 0.
inline Tensor one_hot(const Arg& indices, const Dim& classes, DType dtype = f32) {
  const Compound f("one_hot", {indices});
  const Tensor index = f.integer(0, "indices");
  std::vector<Dim> dims = index.dims();
  dims.push_back(classes);
  const std::int64_t last = index.rank();
  const DType counter = detail::counter_for(index.dtype());
  const Tensor each = f.iota(counter, dims, last);
  return convert(each == along(convert(index, counter), each, last), dtype);
}

/// Negative log-likelihood of labels [..] under logits [.., classes]: [..], f32 (f64 for f64). No reduction.
/// A label outside [0, classes) has loss 0, so a negative label marks what to ignore.
inline Tensor cross_entropy(const Arg& logits, const Arg& labels) {
  const Compound f("cross_entropy", {logits, labels});
  const Tensor wide = f.widened(0), label = f.integer(1, "labels");
  const std::int64_t last = f.axis(-1);
  f.check_rank(1, last);
  for (std::int64_t i = 0; i < last; ++i) {
    f.check_equal("extents of dim " + std::to_string(i), wide.dim(i), label.dim(i));
  }
  const Tensor logp = detail::log_probabilities(wide, last);
  const DType counter = detail::counter_for(label.dtype());
  const Tensor index = f.iota(counter, wide.dims(), last);
  return 0 - sum(select(index == along(convert(label, counter), wide, last), logp, 0), last);
}

/// Where dropout keeps: bool, true with probability 1 - p. Use it to apply one mask to several tensors.
inline Tensor dropout_mask(const Arg& like, double p, const Arg& seed, const Arg& offset) {
  const Compound f("dropout_mask", {like, seed, offset});
  detail::check_share(f, p);
  const Tensor key = seed.is_number() ? f.constant(i64, seed) : seed.tensor();
  return random_uniform(f32, f.tensor(0).dims(), key, offset) >= p;
}

/// Keeps each element with probability 1 - p, scaled by 1 / (1 - p); 0 elsewhere. Each call draws a
/// mask of its own: see random_uniform. 0 <= p < 1.
inline Tensor dropout(const Arg& x, double p, const Arg& seed, const Arg& offset) {
  const Compound f("dropout", {x, seed, offset});
  detail::check_share(f, p);
  const Tensor kept = dropout_mask(x, p, seed, offset);
  const Tensor scaled = f.widened(0) * (1 / (1 - p));
  return f.rounded(select(kept, scaled, 0));
}

}  // namespace v0
}  // namespace fuse
