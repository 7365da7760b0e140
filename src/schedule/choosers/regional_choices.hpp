// Regional kernels by the cost model: how large blocks are, and how many slices (slices.hpp) or which tile
// with halos (halo_tiles.hpp) each has, whichever takes less. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// `alone`: the choices of each phase as a kernel of its own, from which each begins. None where neither
/// is possible: a phase that transposes through shared memory or keeps columns has no slices.
std::optional<KernelChoices> regional_choices(const ir::Graph&, const Segment&,
                                              const std::vector<Choices>& alone, const Target&);

}  // namespace fuse::schedule
