// The users' kernels of a graph: what the emitted text takes over as it is.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "codegen_cuda/text/print_cuda.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/segments/segment.hpp"

namespace fuse::codegen {

/// One entry for each different kernel, in the order of the segments that call them. A user Error where two
/// texts have one name, or where the emitted text or the dialect uses the name already.
std::vector<CustomText> custom_texts(const ir::Graph&, const std::vector<schedule::Segment>&,
                                     const std::vector<kernel::Kernel>& emitted);

}  // namespace fuse::codegen
