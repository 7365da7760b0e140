// The cost model's choices for a kernel segment: who walks a row, how many threads, what they cache.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "schedule/mapping/schedule.hpp"

namespace fuse::schedule {

/// The choices of a phase as a kernel of its own.
Choices model_choices(const ir::Graph&, const Phase&, const Target&);
/// The choices of a segment; none where no block size fits all phases.
std::optional<KernelChoices> model_choices(const ir::Graph&, const Segment&, const Target&);

}  // namespace fuse::schedule
