// The fewest launches that the GEMMs of a plan leave to all else. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "compile/pipeline/pipeline.hpp"

namespace fuse::bench {

/// What the steps of one run are.
struct StepCounts {
  std::int64_t kernels = 0;  ///< launches of kernels, which are memory-bound: all but GEMMs
  std::int64_t gemms = 0;
  std::int64_t copies = 0;  ///< copies and memsets

  bool operator==(const StepCounts&) const = default;
};
StepCounts step_counts(const schedule::Plan&);

/// Two memory-bound ops with a GEMM between them on a path are never in one kernel. So on each path, each run
/// of memory-bound ops between two GEMMs is a launch of its own; this is the largest number of runs on one
/// path. Views, what a GEMM's epilogue computes, and what follows from parameters alone belong to no run.
///
/// Example: x -> exp -> GEMM -> relu -> reshape -> max -> GEMM has two runs, {exp} and {relu max}.
std::int64_t forced_launches(const Compiled&);

}  // namespace fuse::bench
