// Ways to run a kernel that nobody would choose. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "fuzz/grow/random.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/fusion/partition.hpp"
#include "schedule/nest/choices.hpp"
#include "target/target.hpp"

namespace fuse::fuzz {

/// By usual nests; they fit the segment.
schedule::KernelChoices random_choices(const ir::Graph&, const schedule::Segment&, const Target&, Random&);

/// A list of splits of rows and elements, or of tiles, and what may stand beside it. Most are no legal nest.
schedule::Choices random_list(std::uint64_t seed, bool tiles);
/// One that fits the segment; none where few draws found one, and of a kernel of several phases.
std::optional<schedule::KernelChoices> random_nest(const ir::Graph&, const schedule::Segment&, const Target&,
                                                   Random&);

/// How a graph is cut.
schedule::PartitionOptions random_partition(Random random);

}  // namespace fuse::fuzz
