// Drops conditions that hold for every thread: those of tiles that fit exactly, and those implied by one
// around them.
//
// Before:  for b @grid 75 { for w @warp 4 { bind row = 4 * b + w; if row < 300 { .. if w < 1 { s } } } }
// After:   for b @grid 75 { for w @warp 4 { bind row = 4 * b + w; .. if w < 1 { s } } }
//
// Runs before divisions get names: it looks through the names of indices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel elide_conditions(Kernel);

}  // namespace fuse::kernel
