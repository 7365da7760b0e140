// Builders of the cases for the cpu device beside its peers. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/fuse.hpp>

#include "cases/cases.hpp"

namespace fuse::bench {

// Limited by memory. Half types are computed in f32 and rounded once, as the peers do.
Graph build_gelu(DType dtype, const Extents& dims);
Graph build_gelu_tanh(DType dtype, const Extents& dims);
Graph build_nll(DType dtype, const Extents& dims);
Graph build_dropout(DType dtype, const Extents& dims);
Graph build_adam(DType dtype, const Extents& dims);
Graph build_softmax_backward(DType dtype, const Extents& dims);
Graph build_norm_backward(DType dtype, const Extents& dims);

// Models.
Graph build_encoder(DType dtype, const Extents& dims);
Graph build_decode_step(DType dtype, const Extents& dims);
Graph build_lstm(DType dtype, const Extents& dims);

}  // namespace fuse::bench
