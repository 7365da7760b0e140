// AStitch's own thread mapping (3.3, 4.3 step 2, Fig. 8), for comparison: blocks of the largest size; many
// short rows in one (horizontal packing), a grid of at most one wave (vertical packing), and rows split over
// blocks where there are fewer than that and they are long. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// There are none where no block size fits, for scans or for too much shared memory.
std::optional<KernelChoices> astitch_choices(const ir::Graph&, const Segment&, const Target&);

}  // namespace fuse::schedule
