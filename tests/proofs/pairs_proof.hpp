// Ops of pairs round once; an op of f32 and a conversion round twice. The results are the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "proofs/division_proof.hpp"

namespace fuse::test {

/// Sums and products of f16 and bf16 values: rounded from the exact result, and rounded to f32 before. All
/// pairs of bits whose number is a multiple of `stride`; 1: all 2^34 of the four ops.
ProofResult prove_pairs(std::uint64_t stride);

}  // namespace fuse::test
