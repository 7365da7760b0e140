// Parts read: how much of a stored value some nodes read, where they read slices of it alone: of a product of
// all steps of a recurrence, one step reads its own rows.
//
//   %h f32[480, 340]; %a = slice %h rows 16 to 32; %b = slice %h rows 16 to 32, columns 0 to 40
//   elements read: 16 * 340 + 16 * 40, and not 480 * 340
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

/// For each input, the elements that the nodes, in graph order, read of it at most: those of all slices and
/// gathers of it, or all, where an op reads all or they are more.
std::vector<Dim> elements_read(const ir::Graph&, const std::vector<ir::NodeId>& nodes,
                               const std::vector<ir::NodeId>& inputs);
/// The bytes of all inputs that are read so, with symbols at their hints.
double bytes_read(const ir::Graph&, const std::vector<ir::NodeId>& nodes,
                  const std::vector<ir::NodeId>& inputs);

}  // namespace fuse::schedule
