// The plan as a picture: segments as boxes, their ops as nodes, and by which way each value goes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "compile/pipeline/pipeline.hpp"

namespace fuse::fusec {

/// Graphviz DOT text; docs/fusec.md explains it. The same stages give the same bytes.
std::string plan_dot(const Compiled& compiled);

}  // namespace fuse::fusec
