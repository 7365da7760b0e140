// Slice starts: segments that differ only in where slices of stored values begin share a kernel, which gets
// those starts as arguments.
//
// Before:  segment 3: slice %x from 0, tanh     segment 7: slice %x from 8, tanh     two kernels
// After:   slice from 8 * start0, tanh        start0 = 0 of segment 3, 1 of segment 7
//
// A start that all of them have stays a number in the text. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::schedule {

/// Where a slice begins in one of its dims, as an argument of the kernel. Starts that are equal in every
/// segment have one argument.
struct SliceStart {
  ir::NodeId node = 0;
  std::uint32_t axis = 0;
  Dim argument{};           ///< a symbol of no graph; its range contains the values of all segments
  std::int64_t factor = 1;  ///< the start is a multiple of it: factor * argument
  bool operator==(const SliceStart&) const = default;
};

/// The starts that differ among segments of one family (EqualSegments::family_of), with the nodes of the
/// first.
std::vector<SliceStart> starts_that_differ(const ir::Graph&,
                                           const std::vector<const CanonicalSegment*>& segments);
/// The argument's value in a segment, whose `slice` is the counterpart of the start's node.
std::int64_t argument_value(const ir::Graph&, const SliceStart&, ir::NodeId slice);

}  // namespace fuse::schedule
