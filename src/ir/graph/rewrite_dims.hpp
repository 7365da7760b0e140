// Changes the extents of a node, in its type and its attribute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// Calls `rewrite` for every Dim of the node's type and attribute that is no constant.
void rewrite_dims(Node&, const std::function<void(Dim&)>& rewrite);

}  // namespace fuse::ir
