// The choices for a CPU: a block is one warp, whose lanes are vectors (docs/cpu.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// None where one kernel cannot run it: blocks of a CPU do not wait for each other.
std::optional<KernelChoices> cpu_choices(const ir::Graph&, const Segment&, const Target&);

}  // namespace fuse::schedule
