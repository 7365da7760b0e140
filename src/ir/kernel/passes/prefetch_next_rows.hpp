// Asks for the memory of the next row while this one is computed: a processor's own prefetching stops at the
// end of a page, so that every row would start by waiting for memory.
//
// Before:  for row in [0, 64) @grid {
//            for k in [0, 32) @serial { let v = load x[32 * k + lane + 1024 * row]; ...; store hx[k] = v }
//            for k_1 in [0, 32) @serial { let v_1 = load hx[k_1]; ... }
// After:   for row in [0, 64) @grid next row_next {
//            the second loop begins with
//            prefetch x[32 * k_1 + lane + 1024 * row_next] to L1
//
// The loop behind the one that loads asks, where it has as many trips: it waits for memory the least. Where a
// block takes rows in turns, the next row is that of the next turn. Up to 8 KB for a row go to the first
// cache, and up to 256 KB to the second one; nothing is asked for beyond that. Nothing is asked for where an
// index divides or depends on data, or for what the kernel writes. An extent of which only the range is known
// counts by its hint. The pass is for CPUs, and runs after the passes that copy loops.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel prefetch_next_rows(Kernel);

}  // namespace fuse::kernel
