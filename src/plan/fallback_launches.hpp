// with_fallbacks: cooperative kernels give way to their fallback launches, whose blocks need not all be
// resident.
//
// Before:  step 0 zero.k: memset v3 = 0              After:  step 0 k_0: kernel #1 buffers [v0, v1]
//          step 1 k: kernel #0 buffers [v0, v1, v3]          step 1 k_1: kernel #2 buffers [v0, v1] continues
//                 fallback [#1, #2] cooperative
//
// At prepare, where the grids are known, a kernel that does not fit on the device is replaced for good. Plans
// with cooperative kernels also have one with all fallback launches, for runs that find the slots taken.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "plan/plan.hpp"

namespace fuse::schedule {

/// Whether a step is cooperative and has fallback launches.
bool has_fallback(const Step&);

/// Replaces the steps of each run that `cut` picks by their fallback launches. The steps that zero their
/// counters are removed, since nobody uses those any more.
Plan with_fallbacks(const Plan&, const std::function<bool(const Step&)>& cut);

}  // namespace fuse::schedule
