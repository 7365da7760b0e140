// Coincidence: what all evaluations have alike, though roundings of another device may part it.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/graph.hpp"

namespace fuse::runtime::reference {

/// Of each node: whether an element may be 0 because roundings have brought it there, as where a difference
/// cancels. That of `0 * x` is 0 on any device, and so is an exponential that underflows.
std::vector<bool> cancelling_nodes(const ir::Graph&);

/// Whether elements of both may be one element of a third node, unchanged: `p` and `max(p)` select from `p`.
/// Where such are equal, they are on any device.
bool select_from_one(const ir::Graph&, ir::NodeId, ir::NodeId);

}  // namespace fuse::runtime::reference
