// The GEMMs of a case alone, through the device's library. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executable.hpp>

#include "timing.hpp"

namespace fuse::bench {

/// Floating-point operations of the plan's GEMMs; 0 without any. The graph has no symbols.
double gemm_flops(const Executable& executable);
/// One run is all of them, in the plan's order, on buffers of their own.
Spread time_gemms(const Executable& executable, DeviceTimer& timer);

}  // namespace fuse::bench
