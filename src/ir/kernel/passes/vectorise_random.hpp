// Lets a thread draw neighbouring random numbers at once: Philox makes four words at a time, so that four
// numbers of f32, or two of f64, share the work.
//
// Before:  for v in [0, 4) @serial unrolled { let u = random s, o, element 4 * g + v, stream 0; .. }
// After:   vector_random u_v = random s, o, element 4 * g, stream 0; for v .. { let u = load u_v[v]; .. }
//
// The pass runs after hoist_invariants, which takes the seed and the offset out of the loop. The numbers are
// the same.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel vectorise_random(Kernel);

}  // namespace fuse::kernel
