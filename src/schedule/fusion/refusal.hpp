// Refusal: why ops of one group became several kernels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "schedule/groups/group.hpp"

namespace fuse::schedule {

/// What the scheduler handed back: the group was split at these values.
struct Refusal {
  GroupId group = 0;
  Reason reason = Reason::scheme_unavailable;
  std::vector<ir::NodeId> at{};
  std::vector<std::pair<std::string, std::string>> numbers{};  ///< name, value
};

/// The refusal where segments that end at `at` stay apart: the seconds of one kernel for all, and of their
/// own kernels.
Refusal no_gain(GroupId, std::vector<ir::NodeId> at, double together, double apart);

}  // namespace fuse::schedule
