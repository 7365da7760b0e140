// Why a value is stored between two kernels: a reason code, its numbers, and what would have to change.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "schedule/fusion/partition.hpp"

namespace fuse::schedule {

/// One value that one segment makes and another reads.
struct UnfusedEdge {
  ir::NodeId value = 0;                    ///< as it is stored: the root of `producer`
  std::size_t producer = 0, consumer = 0;  ///< indices of segments
  Reason reason = Reason::no_rule;
  std::string_view rule{};  ///< the row that refused; empty where there is none
  std::vector<std::pair<std::string, std::string>> numbers{};
  std::string assume{};  ///< a line of the user's that would change it: "g.assume(equal(S, T));"
  Dim bytes = 0;         ///< size of the value, which fusing would neither store nor load
};

/// All edges between segments, by consumer, then by value.
std::vector<UnfusedEdge> unfused_edges(const ir::Graph&, const Partition&, const PartitionOptions&,
                                       const Target&);

/// What would have to change, for a person.
std::string_view would_change(Reason);

/// "segment 0 -> segment 1  %1: scheme-unavailable (ends at = reduction)  512 bytes; ..."
std::string print(const ir::Graph&, const std::vector<UnfusedEdge>&);

}  // namespace fuse::schedule
