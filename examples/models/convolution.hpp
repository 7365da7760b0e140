// Convolutions and pools over [B, height, width, channels]. fuse has no op for a convolution.
//
// A convolution is one GEMM over windows, [B height width, taps channels] times [taps channels, out]. The
// windows are one kernel, which also computes what made x: a bias, relu, a norm. The other way, a GEMM for
// each tap of a shifted slice, would store no windows and take nine GEMMs where this takes one.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "model_layers.hpp"

namespace example {

/// All windows of an axis: [.., n, ..] to [.., n - size + 1, size, ..].
inline fuse::Tensor windows(Layers& layers, const fuse::Tensor& x, std::int64_t axis, std::int64_t size) {
  const std::vector<fuse::Dim> dims = {x.dim(axis).constant() - size + 1, size};
  const fuse::Tensor first = layers.graph().iota(fuse::i32, dims, 0);
  const fuse::Tensor tap = layers.graph().iota(fuse::i32, dims, 1);
  return fuse::gather(x, first + tap, axis);
}

/// `padding`: zeros on each side of height and width.
inline fuse::Tensor convolution(Layers& layers, const fuse::Tensor& x, const std::string& name,
                                std::int64_t size, std::int64_t padding, std::int64_t out) {
  const auto scope = layers.graph().scope(name);
  const std::vector<fuse::Dim> edge = {0, padding, padding, 0};
  fuse::Tensor taps = padding == 0 ? x : fuse::pad(x, 0, edge, edge);
  taps = windows(layers, windows(layers, taps, 1, size), 3, size);  // [B, H, size, W, size, C]
  taps = fuse::transpose(taps, {0, 1, 3, 2, 4, 5});
  const fuse::Dim height = taps.dim(1), width = taps.dim(2);
  const fuse::Tensor rows =
      fuse::reshape(taps, {x.dim(0) * height * width, size * size * x.dim(3).constant()});
  return fuse::reshape(layers.dense(rows, name, out), {x.dim(0), height, width, out});
}

/// A convolution over an axis of `length` elements as a matrix [length, length filters], by taps [2 reach +
/// 1, filters]: element s gives to element t by the tap of their distance. It follows from weights alone, so
/// it is made once, and nothing has to store the windows of a short axis. A long one would waste products
/// with 0.
inline fuse::Tensor band_matrix(Layers& layers, const fuse::Tensor& taps, std::int64_t length) {
  const std::int64_t reach = taps.dim(0).constant() / 2, filters = taps.dim(1).constant();
  const fuse::Tensor padded = fuse::pad(taps, 0, {length, 0}, {length, 0});
  const fuse::Tensor from = layers.graph().iota(fuse::i32, {length, length}, 0);
  const fuse::Tensor to = layers.graph().iota(fuse::i32, {length, length}, 1);
  return fuse::reshape(fuse::gather(padded, from - to + (reach + length), 0), {length, length * filters});
}

/// The greatest of each window; windows do not overlap, and what does not fill one is left out.
inline fuse::Tensor max_pool(const fuse::Tensor& x, std::int64_t height, std::int64_t width) {
  const std::int64_t rows = x.dim(1).constant() / height, columns = x.dim(2).constant() / width;
  const fuse::Tensor whole = fuse::slice(fuse::slice(x, 1, 0, rows * height), 2, 0, columns * width);
  const fuse::Tensor cells = fuse::reshape(whole, {x.dim(0), rows, height, columns, width, x.dim(3)});
  return fuse::max(cells, {2, 4});
}

}  // namespace example
