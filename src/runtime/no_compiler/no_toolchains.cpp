// The library that only runs: nothing builds kernels. The other library does not have this file.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/device/toolchain.hpp"

namespace fuse::runtime {

std::shared_ptr<const Toolchain> emulated_toolchain(int, bool) { return nullptr; }
std::shared_ptr<const Toolchain> cpu_toolchain(const std::string&) { return nullptr; }
std::shared_ptr<const Toolchain> cuda_toolchain(std::shared_ptr<const Driver>, const Target&) {
  return nullptr;
}

}  // namespace fuse::runtime
