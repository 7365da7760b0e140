// Divides many elements by one value in fewer steps: a division whose divisor is the same in all trips of a
// loop becomes a multiplication by the divisor's reciprocal and a correction, of all elements of a vector.
//
// Before:  for v in [0, 4) @serial unrolled { let a = load h[v]; let q = div a, total; store y_v[v] = q }
// After:   let r = reciprocal of total
//          for v in [0, 4) @serial unrolled { let a = load h[v]; store n[v] = a }
//          vector_divide q_v = n by total (r)
//          for v_1 in [0, 4) @serial unrolled { let q = load q_v[v_1]; store y_v[v_1] = q }
//
// The quotients have the bits of divisions. A loop that is not unrolled, or has more than 8 trips, divides
// vectors of one element. The pass runs after vectorise, since that pass looks for loads and stores in loops
// that are still whole.
//
// On a CPU the lanes of a warp are such a vector, so that the division stays where it is:
//
//          let q = quotient a, total (r)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel divide_by_invariants(Kernel);
Kernel divide_lanes_by_invariants(Kernel);

}  // namespace fuse::kernel
