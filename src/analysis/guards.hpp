// Guards: what only run time can check. prepare evaluates each, on every device.
//
//   assuming S0 = S2 * S3 at main.cpp:4        guard: S0 = S2 * S3 (main.cpp:4)
//   %3 = add %x, %y, f32[B] and f32[T]         guard: B = T, for add %3 (main.cpp:9)
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/dims/guard.hpp"

namespace fuse::analysis {

/// The assumptions that ranges do not prove, and the needs of live ops that assumptions do not prove. Throws
/// as Facts does where they cannot hold together.
std::vector<ir::Guard> guards_of(const ir::Graph&);

}  // namespace fuse::analysis
