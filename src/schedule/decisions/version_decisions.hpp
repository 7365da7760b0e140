// Versions of kernels as entries of decisions: text, and the way between names and a graph's symbols.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "ir/graph/ir_graph.hpp"
#include "schedule/decisions/decisions.hpp"
#include "schedule/versions/versions.hpp"

namespace fuse::schedule {

/// "M, N; M <= 64 ? v0 : v1; v0 M = 16, N = 512; v1 M = 4096, N = 512": what stands in braces.
std::string versions_body(const VersionsDecision&);
/// The inverse, without choices. Throws Error with code parse: the line, and what would be right.
VersionsDecision parse_versions_body(std::string_view body, int line);

/// What was decided, with the names of the graph's symbols.
VersionsDecision versions_decision(const ir::Graph&, const Versions&);
/// The table, conditions, hints and choices. Throws Error with code invalid_argument, with the line, where
/// the graph has other symbols or no dims take a version.
Versions versions_from(const VersionsDecision&, const ir::Graph&);

}  // namespace fuse::schedule
