// Usual nests: the lists of splits that choosers begin with, by the threads of a block and what they do side
// by side. `threads` is a multiple of 32. docs/nests.md has a table of them.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schedule/nest/nest.hpp"

namespace fuse::schedule {

/// One thread for some neighbouring elements: r:grid r:warp8 r:lane32 r:vector4.
std::vector<Split> nest_of_elements(int threads, int vector = 1);
/// One block per tile of a transpose: t:grid y:serial y:warp8 x:lane32 x:vector2.
std::vector<Split> nest_of_tiles(int threads, int vector = 1);
/// Some lanes of a warp per row: r:grid r:warp4 c:serial r:lane4 c:lane8 c:vector4.
std::vector<Split> nest_of_lanes(int threads, int lanes = 32, int vector = 1);
/// One block per row: r:grid c:serial c:warp8 c:lane32 c:vector4.
std::vector<Split> nest_of_blocks(int threads, int vector = 1);
/// Several blocks per row, which leave partials for others, or are a cluster: r:grid c:serial c:grid4 c:warp8
/// c:lane32.
std::vector<Split> nest_of_shared_rows(int threads, int blocks_per_row, int vector = 1,
                                       Level blocks = Level::grid);
/// Some columns side by side, which the threads beside them share: r:grid c:serial c:warp8 c:lane4 r:lane8.
std::vector<Split> nest_of_columns(int threads, int columns = 32);
/// A scan with one warp per row: r:grid r:warp4 c:serial c:lane32.
std::vector<Split> nest_of_scans_by_warps(int threads);
/// A scan with one thread per row: r:grid r:warp8 c:serial r:lane32.
std::vector<Split> nest_of_scans_by_threads(int threads);

/// The splits for so many blocks (or clusters), which stay and take in turns what each block of `splits`
/// would do: r:serial r:grid264 for r:grid.
std::vector<Split> in_turns(std::vector<Split> splits, int blocks);

/// The splits with so many units of a dim at a level; one unit is no split. A new split gets its usual
/// position; among lanes, those of r come first.
std::vector<Split> with_units(std::vector<Split> splits, char dim, Level level, std::int64_t units);

}  // namespace fuse::schedule
