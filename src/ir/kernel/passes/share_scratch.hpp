// Lays arrays of shared memory that are never in use together over each other: those of one type between
// whose uses all threads of the block wait for each other.
//
// Before:  shared a, b, c: put a; barrier; take a; put b; barrier; take b; put c; barrier; take c
// After:   shared a, b:    put a; barrier; take a; put b; barrier; take b; put a; barrier; take a
//
// Arrays that other blocks of a cluster read keep a location of their own.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel share_scratch(Kernel);

}  // namespace fuse::kernel
