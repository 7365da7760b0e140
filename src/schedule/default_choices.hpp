// The cost model's choices for a kernel piece: who walks a row, how many threads, what they hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "schedule/schedule.hpp"

namespace fuse::schedule {

/// Of a piece of several phases; none where no block size fits them all.
std::optional<Choices> joined_choices(const ir::Graph&, const Piece&, const Target&);
Choices default_choices(const ir::Graph&, const Piece&, const Target&);

}  // namespace fuse::schedule
