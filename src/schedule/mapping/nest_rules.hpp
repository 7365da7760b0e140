// Nest rules: which loops a phase can have. The lowering can do every nest that they accept; they refuse the
// others with a reason (docs/nests.md has the table). SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>

#include "ir/graph/ir_graph.hpp"
#include "schedule/nest/choices.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Why no kernel can run the phase, as its choices stage it, by the loops `choices.splits`; empty if one can.
std::string defect_of_loops(const ir::Graph&, const Phase&, const Choices&, const Target&);

}  // namespace fuse::schedule
