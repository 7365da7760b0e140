// Kernels whose blocks wait for each other.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/custom.hpp>

namespace fuse::test {

/// i32 x[rows, 64] to y[2 * rows]: each block sums its row, and then all sums: [sums, their total for each].
CustomKernel row_sums_and_total(const Dim& rows);
/// With a part on each side of the barrier.
CustomKernel row_sums_and_total_in_parts(const Dim& rows);

}  // namespace fuse::test
