// A segment with a graph of its own: what versions are tried on, so that a trial costs what the segment has,
// and not what the graph has. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

struct SegmentPart {
  ir::Graph graph;
  Segment segment{};  ///< as it was, with the nodes of this graph
};

/// The segment's nodes, with inputs in place of what they read but constants. Symbols and assumptions are all
/// of those that the graph has.
SegmentPart part_of(const ir::Graph&, const Segment&);

}  // namespace fuse::schedule
