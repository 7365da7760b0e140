// The costly element-wise ops of the op table, which the emulated device counts in checked mode: what
// AStitch's profiles call inst_fp_32, but for these alone. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse::ir {

struct CostlyOp {
  std::string_view name{};           ///< "exp"
  std::vector<std::string> calls{};  ///< functions that a kernel's text calls for it: "exp", "expf"
};

/// In the order of the table. It is made once; thread-safe.
const std::vector<CostlyOp>& costly_ops();

}  // namespace fuse::ir
