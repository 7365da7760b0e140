// The text form of a graph (`.fuse`): deterministic, and the inverse of parse.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/ir_graph.hpp"

namespace fuse::ir {

std::string print(const Graph&);

/// Parses `.fuse` text. Errors are user Errors with code parse (or what infer_type says), their location is
/// `file`:line and the message starts with the column. The result is verified. Bounded: at most 2^24 nodes,
/// rank 32.
Graph parse(std::string_view text, const std::string& file);

}  // namespace fuse::ir
