// The CUDA printer: kernels become one text in the device dialect, readable, each op's line naming its scope.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "codegen_cuda/source.hpp"
#include "ir/kernel/kernel.hpp"

namespace fuse::codegen {

/// A user's kernel: its text stands behind ours.
struct CustomText {
  std::string name, source;
  int block_threads = 256;
  std::int64_t shared_bytes = 0;
  std::vector<KernelParam> params{};
  kernel::Origin origin{};  ///< of the first call
};

/// `drop_barrier` >= 0 leaves out the k-th barrier of the text, to show that the checker finds it missing.
Source print_cuda(const std::string& name, const std::vector<kernel::Kernel>& kernels,
                  const std::vector<CustomText>& customs = {}, int drop_barrier = -1);

}  // namespace fuse::codegen
