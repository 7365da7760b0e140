// The text of kernels for the cpu device: C++ in which a warp of 32 lanes is vectors. docs/cpu.md follows one
// kernel. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "ir/kernel/kernel.hpp"
#include "plan/source.hpp"

namespace fuse::codegen {

/// Kernels with one warp in each block. Throws an internal Error for what no block of one warp has: barriers
/// of several blocks, and accesses that the passes for GPUs make.
Source print_cpu(const std::string& name, const std::vector<kernel::Kernel>& kernels, int threads = 0);

}  // namespace fuse::codegen
