// make_plan: segments, in order, become steps; stored values become the caller's buffers, temporaries, or
// what is packed once from the parameters. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "plan/plan.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// One buffer parameter of a kernel.
struct BufferSource {
  enum class Kind : std::uint8_t {
    node,     ///< stored
    scratch,  ///< a component of the segment's partial results
    counter,  ///< the counters of grid barriers
  };
  Kind kind = Kind::node;
  ir::NodeId node = 0;
  std::size_t scratch = 0;
};

/// A launch of a segment: the kernel that it runs, which other segments may run too, and the arguments of its
/// own that it gives it.
struct PlannedLaunch {
  std::string name;                   ///< the step's name
  std::uint32_t kernel = 0;           ///< the kernel's number in the source
  std::vector<BufferSource> buffers;  ///< in the kernel's parameter order
  std::vector<Dim> extents;           ///< values of the extent parameters, in their order
};

/// What a kernel segment runs, or one of its versions.
struct SegmentKernels {
  std::optional<StepVersion> version{};  ///< none: it runs for all dims
  const Schedule* schedule = nullptr;
  std::vector<PlannedLaunch> launches{};  ///< one for each of the schedule's
};

/// `kernels`: for each segment, in segment order, its versions, or the one way in which it runs; none for a
/// GEMM and for a user's kernel. `tables`: those of the versions. `customs`: the kernel of each custom call's
/// name.
Plan make_plan(const ir::Graph&, const Partition&, const std::vector<std::vector<SegmentKernels>>& kernels,
               std::vector<VersionTable> tables = {},
               const std::map<std::string, std::uint32_t>& customs = {});

}  // namespace fuse::schedule
