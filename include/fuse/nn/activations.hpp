// Activations: functions of each element. Each takes a floating tensor and gives one of its type and dims;
// f16 and bf16 are computed in f32 and rounded once. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/compound.hpp>
#include <fuse/graph.hpp>

namespace fuse {
inline namespace v0 {

/// maximum(x, 0); of any type with an order, NaN stays NaN.
inline Tensor relu(const Arg& x) {
  const Compound f("relu", {x});
  return maximum(f.tensor(0), 0);
}

/// 1 / (1 + exp(-x))
inline Tensor sigmoid(const Arg& x) {
  const Compound f("sigmoid", {x});
  const Tensor wide = f.widened(0);
  return f.rounded(reciprocal(1 + exp(-wide)));
}

/// log(1 + exp(x)), without overflow
inline Tensor softplus(const Arg& x) {
  const Compound f("softplus", {x});
  const Tensor wide = f.widened(0);
  const Tensor tail = log1p(exp(-abs(wide)));
  return f.rounded(maximum(wide, 0) + tail);
}

/// x/2 (1 + erf(x / sqrt 2))
inline Tensor gelu(const Arg& x) {
  const Compound f("gelu", {x});
  const Tensor wide = f.widened(0);
  const Tensor halved = wide * 0.5;
  constexpr double sqrt_half = 0.70710678118654752440;
  return f.rounded(halved * (1 + erf(wide * sqrt_half)));
}

/// GELU by tanh: x/2 (1 + tanh(sqrt(2 / pi) (x + 0.044715 x^3))), as GPT-2 has it
inline Tensor gelu_tanh(const Arg& x) {
  const Compound f("gelu_tanh", {x});
  const Tensor wide = f.widened(0);
  const Tensor halved = wide * 0.5;
  const Tensor cubic = wide * (wide * wide * 0.044715 + 1);
  constexpr double sqrt_2_over_pi = 0.79788456080286535588;
  return f.rounded(halved * (1 + tanh(cubic * sqrt_2_over_pi)));
}

/// x / (1 + exp(-x)), also known as swish
inline Tensor silu(const Arg& x) {
  const Compound f("silu", {x});
  const Tensor wide = f.widened(0);
  return f.rounded(wide / (1 + exp(-wide)));
}

/// x clamp(x + 3, 0, 6) / 6
inline Tensor hard_swish(const Arg& x) {
  const Compound f("hard_swish", {x});
  const Tensor wide = f.widened(0);
  const Tensor gate = clamp(wide + 3, 0, 6);
  return f.rounded(wide * gate / 6);
}

/// x tanh(softplus(x))
inline Tensor mish(const Arg& x) {
  const Compound f("mish", {x});
  const Tensor wide = f.widened(0);
  return f.rounded(wide * tanh(softplus(wide)));
}

}  // namespace v0
}  // namespace fuse
