// Several segments made into one kernel, and put into the partition in their place.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "schedule/fusion/partition.hpp"
#include "schedule/fusion/segment_graph.hpp"

namespace fuse::schedule {

/// What the segments compute, read and store together, each as a phase, in this order. Each has one phase.
/// What one stores for another is no input of the whole.
Segment assembled(const Partition&, const std::vector<SegmentId>&);

/// Segments that become one.
struct Assembly {
  std::vector<SegmentId> segments{};
  Segment whole{};
};

/// Replaces segments by what they become, in an order that respects dependencies and otherwise keeps the old
/// one. The graph is that of the partition as it is now, and none of these makes a cycle in it.
void replace_segments(const SegmentGraph&, std::vector<Assembly>, Partition&);

}  // namespace fuse::schedule
