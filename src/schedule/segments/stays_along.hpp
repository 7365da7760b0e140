// Which dims an op that moves elements leaves alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "ir/graph/ir_graph.hpp"

namespace fuse::schedule {

/// Positions of dims in a shape.
using Positions = std::vector<std::size_t>;

/// The dims that are longer than 1.
Positions long_dims(const std::vector<Dim>&);

/// Whether a slice, a pad, a concat and the like leave each element where it is along these dims.
bool stays_along(const ir::Graph&, const ir::Node&, std::size_t operand, const Positions& dims);

}  // namespace fuse::schedule
