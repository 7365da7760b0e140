// Schemes: how each value of a kernel reaches the threads that need it (AStitch, Table 1 and 4.3, step 3),
// read off its schedule.
//
// Before:  phases  %6 reduce_sum | %8 pow  ||  %11 reduce_sum | %13 mul    (the second split over blocks)
// After:   regional %6  global %8 %11  independent %13, all else local
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

enum class Scheme : std::uint8_t {
  independent,  ///< nothing in the kernel reads it
  local,        ///< in a register of the thread that computed it
  regional,     ///< the threads of a block share it: by shuffles, or in shared memory
  cluster,      ///< the blocks of a cluster share it, in their shared memory
  global,       ///< in memory, for after a grid barrier or for a later launch
};
std::string_view to_string(Scheme);

/// The role of a value in its group, which is all values whose loops follow those of one, the dominant (4.3,
/// step 1).
enum class Dominance : std::uint8_t { none, dominant, sub_dominant };
std::string_view to_string(Dominance);

struct NodeScheme {
  ir::NodeId node = 0;
  Scheme scheme = Scheme::local;
  Dominance dominance = Dominance::none;
  std::size_t phase = 0;  ///< the first phase that computes it
};

/// The scheme of each value of the segment, in graph order.
std::vector<NodeScheme> schemes_of(const ir::Graph&, const Schedule&);
/// "regional %6, global %8 %11, independent %13"
std::string schemes_text(const ir::Graph&, const Schedule&);

}  // namespace fuse::schedule
