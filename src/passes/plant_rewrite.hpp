// plant_rewrite: a graph with one rewrite gone wrong, to see that `fusec bisect` finds it.
//
// Before:  %4 = sub %x, %3
// After:   %4 = sub %x, %x
//
// Runs after the pass that should have done it; the graph is valid, and computes something else.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

struct WrongRewrite {
  std::string pass;  ///< "simplify": the first pass of this name
  /// The site's number among the element-wise ops of two different operands of one type.
  std::size_t site = 0;
  bool operator==(const WrongRewrite&) const = default;
};

/// "rewrite.simplify.3"
std::string to_string(const WrongRewrite&);
std::optional<WrongRewrite> parse_wrong_rewrite(std::string_view);
/// False where there is no such site.
bool plant_rewrite(Graph&, std::size_t site);

}  // namespace fuse::ir
