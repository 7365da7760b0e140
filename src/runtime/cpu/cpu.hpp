// The cpu device: native kernels on the cores of this machine, in host memory.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/executor.hpp>
#include <memory>

#include "runtime/device/backend.hpp"
#include "target/target.hpp"

namespace fuse::runtime {

struct CpuOptions {
  int threads = 0;                       ///< the calling one counts; 0: as many as the process may use cores
  bool pin = false;                      ///< each thread of the device's own stays on one core
  std::shared_ptr<Executor> executor{};  ///< threads to use instead of the device's own
};

/// Throws a user Error for a number of threads that is negative or above 1024. Without a toolchain the device
/// runs only what was compiled elsewhere.
std::unique_ptr<Backend> make_cpu_backend(const CpuOptions& options, const Target& target,
                                          std::shared_ptr<const Toolchain> toolchain);

}  // namespace fuse::runtime
