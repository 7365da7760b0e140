// The cost model's choices for a kernel piece: who walks a row, how many threads, what they hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// Of a segment as a kernel of its own.
Choices default_choices(const ir::Graph&, const Segment&, const Target&);
/// None where no block size fits all phases.
std::optional<KernelChoices> default_choices(const ir::Graph&, const Piece&, const Target&);

}  // namespace fuse::schedule
