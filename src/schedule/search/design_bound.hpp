// The bound of Dali's search: what every design that begins with some values costs at least, by the terms of
// segment_cost.hpp. Each term takes the best that variables without a value can still bring; docs/search.md
// says why none is more than what the cost model adds. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "ir/graph/ir_graph.hpp"
#include "schedule/search/design_facts.hpp"
#include "schedule/search/partial_design.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// Seconds of the phase as a kernel of its own. `threads`: of a block; 0: any.
double design_bound(const ir::Graph&, const DesignFacts&, const PartialDesign&, const DesignNumbers&,
                    int threads, const Target&);

/// The most blocks that any completion has at work at a time, with so many warps of rows.
std::int64_t blocks_at_most(const DesignFacts&, const PartialDesign&, int row_warps);
/// The registers in which a thread may cache elements, with the state of columns: as choosers have it.
int cache_limit(const DesignFacts&, const PartialDesign&, const Target&);

}  // namespace fuse::schedule
