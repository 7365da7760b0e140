// The cost model's choices for a kernel piece: who walks a row, how many threads, what they hold.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "schedule/schedule.hpp"

namespace fuse::schedule {

Choices default_choices(const ir::Graph&, const Piece&, const Target&);

}  // namespace fuse::schedule
