// make_plan: pieces, in order, become steps; stored values become the caller's buffers, temporaries, or what
// is packed once from the parameters.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/graph.hpp"
#include "schedule/partition.hpp"
#include "schedule/plan.hpp"
#include "schedule/schedule.hpp"

namespace fuse::schedule {

/// One buffer parameter of a kernel: a stored node, or component `scratch` of the piece's partial results.
struct BufferSource {
  bool is_scratch = false;
  ir::NodeId node = 0;
  std::size_t scratch = 0;
};

/// What the plan needs to know of an emitted kernel.
struct PlannedKernel {
  std::string name;
  std::vector<BufferSource> buffers;  ///< in parameter order
  std::vector<Dim> extents;           ///< the graph's symbols, in parameter order
};

/// `kernels`: of all schedules, in order. `schedules`: of the kernel pieces, in piece order.
Plan make_plan(const ir::Graph&, const Partition&, const std::vector<Schedule>& schedules,
               const std::vector<PlannedKernel>& kernels);

}  // namespace fuse::schedule
