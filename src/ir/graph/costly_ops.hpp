// The costly element-wise ops of the op table, whose executions the emulated device counts in checked mode:
// for these ops alone, what AStitch reads off a profiler as inst_fp_32. SPDX-License-Identifier: Apache-2.0
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
