// Changes the extents of a node, in its type and its attribute.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// Calls `rewrite` for every Dim of the node's type and attribute that is no constant.
void rewrite_dims(Node&, const std::function<void(Dim&)>& rewrite);

/// The graph with numbers in place of its symbols, of which `of` tells the values: a static one. What it
/// assumes of them is left out.
Graph with_values(const Graph&, detail::FunctionRef<std::int64_t(std::string_view)> of);

}  // namespace fuse::ir
