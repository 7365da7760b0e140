// Names divisions and remainders of indices that are used more than once, at the outermost point where all
// they mention is in scope: they are the costly part of index arithmetic, and a name reads better than a
// formula.
//
// Before:  bind i = 256 * b + t; if i < 1024 * B { let v0 = load m[i / 1024]; let v1 = load s[i / 1024] }
// After:   bind i = 256 * b + t; if i < 1024 * B { bind i_div_1024 = i / 1024; let v0 = load m[i_div_1024];
// .. }
//
// The last kernel pass: index arithmetic is simplified while it is still formulas.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel name_divisions(Kernel);

}  // namespace fuse::kernel
