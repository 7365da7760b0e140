// The graph's spec, checked at every stage boundary in tests and after parsing.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <unordered_set>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

/// Throws an Error (internal when `kind` is internal: a pass broke the graph) naming the node: operands
/// before users (cycle otherwise), arity, attribute kind, type rule, unique non-empty names, symbols declared
/// with their ranges, scopes and locations in range, outputs exist.
void verify(const Graph&, ErrorKind kind = ErrorKind::internal);

/// The donors of a graph's outputs, one output after the other.
class Donors {
 public:
  struct Fault {
    ErrorCode code = ErrorCode::ok;  ///< ok where the output may have its donor
    std::string message{}, hint{};
  };
  Fault add(const Graph&, const Output&);

 private:
  std::unordered_set<NodeId> taken_;
};

}  // namespace fuse::ir
