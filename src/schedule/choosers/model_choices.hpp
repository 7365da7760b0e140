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

/// The choices with blocks of another size. All threads of a row that several blocks share have as much of it
/// together as before.
Choices with_threads(Choices, int threads);
/// The choices with which a phase takes one launch, whose blocks pass nothing on to each other.
Choices in_one_launch(const ir::Graph&, const Phase&, Choices, const Target&);

}  // namespace fuse::schedule
