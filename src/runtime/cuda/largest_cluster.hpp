// How many blocks a cluster may have on a GPU: none of its attributes says so.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "runtime/cuda/driver.hpp"

namespace fuse::runtime {

/// Every whole GPU with clusters has those of so many blocks; larger ones a kernel has to be allowed.
constexpr int portable_cluster = 8;

/// Sets `blocks` to the largest cluster that the device holds even where each block has a multiprocessor of
/// its own: fewer on a MIG instance, or where a group of multiprocessors has lost some. Asks the driver by an
/// empty kernel that it compiles itself; `unsupported` where it has no compiler. The device's context is
/// current.
Status largest_cluster(const Driver&, const Target&, int& blocks) noexcept;

}  // namespace fuse::runtime
