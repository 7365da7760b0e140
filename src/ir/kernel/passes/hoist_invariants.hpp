// Moves what is the same in all trips of a serial loop before it, where the loop surely runs.
//
// Before:  for v in [0, 4) @serial unrolled { let a = load x[4 * g + v]; let m = load mean[g / 256]; .. }
// After:   let m = load mean[g / 256]; for v in [0, 4) @serial unrolled { let a = load x[4 * g + v]; .. }
//
// Loads stay where the loop stores to their buffer, or waits for other threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel hoist_invariants(Kernel);

}  // namespace fuse::kernel
