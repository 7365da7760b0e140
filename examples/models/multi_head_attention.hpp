// Attention with several heads, over rows that a model keeps as [B, rows, width].
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "model_layers.hpp"

namespace example {

/// x [B, rows, width] as [B, heads, rows, width / heads].
inline fuse::Tensor heads_of(const fuse::Tensor& x, std::int64_t heads) {
  const std::int64_t width = x.dim(2).constant() / heads;
  return fuse::transpose(fuse::reshape(x, {x.dim(0), x.dim(1), heads, width}), {0, 2, 1, 3});
}

struct KeysAndValues {
  fuse::Tensor keys, values;  ///< [B, rows, width]
};

inline KeysAndValues keys_and_values(Layers& layers, const fuse::Tensor& x, const std::string& name) {
  const std::int64_t width = x.dim(2).constant();
  const fuse::Tensor keys = layers.dense(x, name + ".key", width);
  return {.keys = keys, .values = layers.dense(x, name + ".value", width)};
}

/// The rows of x ask the keys; the values that they get go through one more dense layer.
inline fuse::Tensor attend(Layers& layers, const fuse::Tensor& x, const KeysAndValues& to,
                           const std::string& name, std::int64_t heads) {
  const std::int64_t width = x.dim(2).constant();
  const fuse::Tensor queries = layers.dense(x, name + ".query", width);
  const fuse::Tensor mixed =
      fuse::attention(heads_of(queries, heads), heads_of(to.keys, heads), heads_of(to.values, heads));
  const fuse::Tensor rows = fuse::reshape(fuse::transpose(mixed, {0, 2, 1, 3}), x.dims());
  return layers.dense(rows, name + ".out", width);
}

}  // namespace example
