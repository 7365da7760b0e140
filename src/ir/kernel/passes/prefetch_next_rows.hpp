// Asks for the memory that the next block reads, while this one computes: a processor's own prefetching stops
// at the end of a page, so that every row would start by waiting for memory.
//
// Before:  for k in [0, 32) @serial { let v = load x[32 * k + lane + 1024 * row]; ...; store hx[k] = v }
//          for k_1 in [0, 32) @serial { let v_1 = load hx[k_1]; ... }
// After:   the second loop begins with
//            prefetch x[32 * k_1 + lane + 1024 * row + 1024]
//
// The loop behind the one that loads asks, where it has as many trips: its own work does not wait for memory.
// Up to 8 KB for a block go to the first cache, and up to 256 KB to the second one; of more than that
// nothing is asked for. Nor is anything where an index divides, or depends on data, or for what the kernel
// writes. Extents of which only a range is known have their hints. For CPUs; it runs after the passes that
// copy loops. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel prefetch_next_rows(Kernel);

}  // namespace fuse::kernel
