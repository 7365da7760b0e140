// The kernels of group probe, in the device dialect. SPDX-License-Identifier: Apache-2.0
#pragma once

#include "plan/source.hpp"
#include "target/target.hpp"

namespace fuse::bench {

/// Each kernel takes (x, n) and does one thing n times, so that the cost of one is a difference of two times.
/// What the target does not have (bf16 conversions before sm_80, clusters) is left out.
codegen::Source probe_source(const Target& target);

constexpr int probe_threads = 256;   ///< of a block
constexpr int words_of_a_line = 32;  ///< of 4 bytes: `chase` steps from one line of 128 bytes to another

}  // namespace fuse::bench
