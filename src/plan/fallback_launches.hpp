// with_fallbacks: kernels that spin give way to their parts, which need no places for all blocks at a time.
//
// Before:  step 0 zero.k: memset v3 = 0              After:  step 0 k_0: kernel #1 buffers [v0, v1]
//          step 1 k: kernel #0 buffers [v0, v1, v3]          step 1 k_1: kernel #2 buffers [v0, v1] continues
//                 fallback [#1, #2] cooperative
//
// It stands at prepare, where the grids are known: a kernel that the device cannot hold at a time is cut for
// good, and one that it can hold has a plan of parts besides, for workspaces that come when places are taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "plan/plan.hpp"

namespace fuse::schedule {

/// Whether a step spins and has parts.
bool has_fallback(const Step&);

/// Cuts the steps of each run that have parts and that `cut` picks. What only they used is used by nobody:
/// the steps that zero their counters go.
Plan with_fallbacks(const Plan&, const std::function<bool(const Step&)>& cut);

}  // namespace fuse::schedule
