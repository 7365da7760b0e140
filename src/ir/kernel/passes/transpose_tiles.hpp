// Turns tiles of shared memory that a block's one warp reads down their columns, a lane for each row: the
// lanes of a CPU are vectors, which take a row in one load and a column element by element.
//
// Before:  put 32 rows of tile; barrier; for k: lanes take tile[pitch * lane + k]
// After:   put 32 rows of tile; barrier; transpose tile; barrier; for k: lanes take tile[lane + 32 * k]
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

Kernel transpose_tiles(Kernel);

}  // namespace fuse::kernel
