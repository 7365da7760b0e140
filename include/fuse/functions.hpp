// Compound functions: each opens at once into primitives (APOLLO, section 3.2), so nothing later sees its
// boundary. Each of these ops carries the caller's line and the function's scope. f16 and bf16 arguments are
// converted to f32 at the start and the result is rounded once at the end, to the type of the first argument.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/export.hpp>
#include <fuse/graph.hpp>
#include <optional>

namespace fuse {
inline namespace v0 {

FUSE_COMPILER_API_BEGIN

Tensor softmax(const Arg& x, std::int64_t axis = -1);
Tensor log_softmax(const Arg& x, std::int64_t axis = -1);
/// Normalises over the last dim; gamma and beta have its extent.
Tensor layer_norm(const Arg& x, const Arg& gamma, const Arg& beta, double epsilon = 1e-5);
Tensor rms_norm(const Arg& x, const Arg& gamma, double epsilon = 1e-6);
/// x/2 (1 + erf(x / sqrt 2))
Tensor gelu(const Arg& x);
/// x / (1 + exp(-x))
Tensor silu(const Arg& x);
/// x [.., in] times weight [in, out] plus bias [out]: one matmul over the flattened leading dims.
Tensor linear(const Arg& x, const Arg& weight);
Tensor linear(const Arg& x, const Arg& weight, const Arg& bias);
/// Rows of table [vocabulary, width] at the indices: indices.dims + [width].
Tensor embedding(const Arg& table, const Arg& indices);
/// q, k, v [batch, heads, length, width]: softmax(q k^T / sqrt(width)) v. `causal` masks the keys
/// after a query; queries and keys then have one length. The weights are rounded once, before they meet v.
Tensor attention(const Arg& q, const Arg& k, const Arg& v, bool causal = false);
/// Negative log-likelihood of labels [..] under logits [.., classes]: [..], f32 (f64 for f64). No reduction.
/// A label outside [0, classes) has loss 0, so a negative label marks what to ignore.
Tensor cross_entropy(const Arg& logits, const Arg& labels);

/// Keeps each element with probability 1 - p, scaled by 1 / (1 - p); 0 elsewhere. Each call draws a
/// mask of its own: see random_uniform. 0 <= p < 1.
Tensor dropout(const Arg& x, double p, const Arg& seed, const Arg& offset);
/// Where dropout keeps: bool, true with probability 1 - p. Use it to apply one mask to several tensors.
Tensor dropout_mask(const Arg& like, double p, const Arg& seed, const Arg& offset);

FUSE_COMPILER_API_END

}  // namespace v0
}  // namespace fuse
