// Gives the lanes of a CPU that all lie in one row a body of their own: there the row is one number, and what
// lanes read of it lies side by side.
//
// Before:  i = 32 * b + t; y[i] = x[i] * scale[i / C] + bias[i % C]
// After:   i = 32 * b + t
//          if 32 * b % C + 31 < C: y[i] = x[i] * scale[32 * b / C] + bias[32 * b % C + t]
//          if C < 32 * b % C + 32: y[i] = x[i] * scale[i / C] + bias[i % C]
//
// Where the first condition always holds, the second body is left out.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel split_at_row_ends(Kernel);

}  // namespace fuse::kernel
