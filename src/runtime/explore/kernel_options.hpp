// The loops that are tried for a kernel, and the order in which a plan adds.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/explore.hpp>
#include <string>
#include <vector>

#include "compile/pipeline/pipeline.hpp"

namespace fuse::runtime {

/// What may be tried for a kernel.
struct KernelLimits {
  Bits bits = Bits::keep;     ///< keep: nothing that adds in another order
  bool grid_barriers = true;  ///< blocks may wait for each other
  int most = 1;               ///< options, the default included
};

/// What the segment runs with by default, then what a search finds, then of each structure the fastest by the
/// cost model, the fastest of them first. A segment of several phases, or one that updates in place, has the
/// first two alone.
std::vector<schedule::KernelChoices> kernel_options(const ir::Graph&, const schedule::Segment&, const Target&,
                                                    const KernelLimits&);

/// In which order the sums and scans of a plan add, and how its GEMMs are called: plans of one text give the
/// same bits.
std::string order_of_additions(const Compiled&);

}  // namespace fuse::runtime
