// Lets a thread access what lies side by side at once: loads and stores of an unrolled loop whose index is
// a multiple of the trips plus the counter.
//
// Before:  for v in [0, 4) @serial unrolled { let a = load x[4 * g + v]; ..; store y[4 * g + v] = b }
// After:   vector_load x_v = x[4 * g]; for v .. { let a = load x_v[v]; ..; store y_v[v] = b };
//          vector_store y[4 * g] = y_v
//
// An access has 16 bytes at most; 32 bytes are two. Only memory that the loop does not also write (load) or
// read (store) is accessed so. Buffers begin at a multiple of 16 bytes (Executable's contract), so that the
// index alone decides.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel vectorise(Kernel);

}  // namespace fuse::kernel
