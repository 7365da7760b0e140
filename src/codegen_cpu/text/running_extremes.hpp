// Running extremes: maxima and minima of floats that a loop only takes and never reads. The text keeps them
// in a form that takes a value in fewer steps, each of which waits for one before it for a cycle alone.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "ir/kernel/kernel.hpp"

namespace fuse::codegen {

struct RunningExtreme {
  kernel::VarId state = 0;
  bool maximum = true;  ///< else a minimum
};

/// Those of a serial loop, in the order of their states. What takes few values is left out.
std::vector<RunningExtreme> running_extremes(const kernel::Kernel&, const kernel::For&);

}  // namespace fuse::codegen
