// The loops that are tried for a kernel, and the order in which a plan adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/explore.hpp>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"

namespace fuse::runtime {

/// What the segment runs with by default, then at most `most` - 1 others: of each structure the fastest by
/// the cost model, the fastest of them first. With Bits::keep, none that adds in another order. A segment of
/// several phases has its default alone.
std::vector<schedule::KernelChoices> kernel_options(const ir::Graph&, const schedule::Segment&, const Target&,
                                                    Bits bits, int most);

/// In which order the sums and scans of a plan add, and how its GEMMs are called: plans of one text give the
/// same bits.
std::string order_of_additions(const Compiled&);

}  // namespace fuse::runtime
