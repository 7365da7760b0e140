// Lowering: a launch of a schedule becomes a kernel. Decides nothing: its nest says who computes what.
//
// Before:  schedule whole: results B  reduced 1024  grid (B + 3) / 4 x 128
//            nest r:grid r:warp4 c:serial c:lane32
// After:   for b @grid { for w @warp { bind row = 4 b + w; if row < B { declare s; for lane @lane {
//            for c in [lane, 1024) by 32 { let v = load x[1024 row + c]; combine s, v } }
//            warp_combine s; if lane < 1 { store out[row] = s } } } }
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>
#include <vector>

#include "ir/graph/ir_graph.hpp"
#include "ir/kernel/kernel.hpp"
#include "schedule/mapping/schedule.hpp"

namespace fuse::codegen {

/// What a kernel's buffer parameter is bound to.
struct Scratch {
  std::size_t component = 0;
};
/// The counter of a grid barrier, zero before the launch.
struct Counter {};
using Binding = std::variant<ir::NodeId, Scratch, Counter>;

struct LoweredKernel {
  kernel::Kernel kernel;
  std::vector<Binding> bindings;  ///< what the global buffers are bound to, in order
  /// What the kernel's extents stand for: the graph's symbols over their factors, arguments of
  /// Schedule::starts.
  std::vector<Dim> extents;
};

/// Lowers launch `index` of the schedule to a kernel called `name`.
LoweredKernel lower(const ir::Graph&, const schedule::Schedule&, std::size_t index, const std::string& name);

}  // namespace fuse::codegen
