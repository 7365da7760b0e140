// The order in which a kernel adds values up: kernels of one order give the same bits, so a search may
// exchange one for another where bits have to stay. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::schedule {

/// A text of all that changes the order: which threads have which elements of what is reduced or scanned, and
/// how they combine. Equal texts for one segment mean equal bits; texts may differ where bits do not.
///
///   "row 4 blocks 8 warps 32 lanes 4 elements 2 accumulators; "
std::string reduction_order(const ir::Graph&, const Segment&, const KernelChoices&);
/// The part of one phase.
std::string reduction_order(const ir::Graph&, const Phase& cut, const Choices&);

}  // namespace fuse::schedule
