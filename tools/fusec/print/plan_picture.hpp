// The plan as a picture of ops that become kernels: one row per step. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "fusec/compiled_graph.hpp"

namespace fuse::fusec {

/// SVG text; docs/fusec.md explains it. The same stages give the same bytes.
std::string plan_picture(const CompiledGraph& compiled);

}  // namespace fuse::fusec
