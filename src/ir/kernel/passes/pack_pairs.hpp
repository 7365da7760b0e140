// Computes two elements of f16 or bf16 at a time: an unrolled loop whose body loads them side by side, or
// rounds to such a type, takes its elements in pairs.
//
// Before:  for v in [0, 8) @serial unrolled { let a: bf16 = load x_v[v]; let b: f32 = convert a;
//            let c: f32 = mul b, 0.5; let d: bf16 = convert c; store y_v[v] = d }
// After:   for p in [0, 4) @serial unrolled { let a: 2 x bf16 = load x_v[2 * p];
//            let k: 2 x bf16 = constant 0.5; let d: 2 x bf16 = mul a, k; store y_v[2 * p] = d }
//
// An op of Trait::pairs whose operands are halves, and whose result is rounded to their type, becomes an op
// of pairs. Its bits are the same: the significand of f32 has at least twice as many bits as that of a half,
// and two more, so that rounding to f32 first changes nothing (tests/proofs/pairs_proof.cpp). All other ops
// are computed for each element in f32, and their results are rounded in pairs. The pass runs after vectorise
// and divide_by_invariants, which look for loops that visit one element in each trip.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel pack_pairs(Kernel);

}  // namespace fuse::kernel
