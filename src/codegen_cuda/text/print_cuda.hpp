// The CUDA printer: kernels become one text in the device dialect, readable, each op's line naming its scope.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/kernel/kernel.hpp"
#include "plan/source.hpp"

namespace fuse::codegen {

/// A user's kernel: its text stands after ours.
struct CustomText {
  std::string name, source;
  int block_threads = 256;
  std::int64_t shared_bytes = 0;
  std::vector<KernelParam> params{};
  kernel::Origin origin{};   ///< the origin of the first call
  ir::NodeId call = 0;       ///< the first one
  bool cooperative = false;  ///< has a grid barrier
};

struct PrintOptions {
  int threads = 1;  ///< threads that print kernels; 0: one per core
};
Source print_cuda(const std::string& name, const std::vector<kernel::Kernel>& kernels,
                  const std::vector<CustomText>& customs = {}, const PrintOptions& options = {});

/// The CUDA bodies of the primitives that a text calls: what stands before it where it is compiled alone.
std::string prelude_of(std::string_view body);

}  // namespace fuse::codegen
