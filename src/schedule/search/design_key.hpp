// The key of a search: Dali's expression hash (its Table 7), by which a second optimisation of the same
// structure is nearly free. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <compare>
#include <cstdint>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

struct DesignKey {
  std::uint64_t segment = 0, target = 0, options = 0;
  auto operator<=>(const DesignKey&) const = default;
};

/// A hash of what a kernel computes and how it is cut into phases and stages, without names, lines and ids,
/// in the time of its own nodes. Segments of one canonical form (canonical.hpp) whose nodes stand in one
/// order have one hash; the form itself needs a note for each node of the graph, which takes longer than a
/// search is to take the second time. Which inputs share a buffer does not count: no choice depends on it.
std::uint64_t segment_key(const ir::Graph&, const Segment&);
/// A hash of all that is known of the target, its speed included.
std::uint64_t target_key(const Target&);

}  // namespace fuse::schedule
