// The table of dist/first. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "first/first_inputs.hpp"

namespace fuse::bench {

/// The parts and how they ended; each case beside a copy, PyTorch, another build and the prediction; the cost
/// model's constants beside what was measured; what the profiler and the probe saw. What is not known is "-".
std::string first_table(const FirstInputs& inputs);

}  // namespace fuse::bench
