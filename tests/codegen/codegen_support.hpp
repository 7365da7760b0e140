// What the tests of emitted text share: the body of a graph's kernels for one profile.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "base/access.hpp"
#include "compile/pipeline/pipeline.hpp"
#include "schedule/schedule_support.hpp"

namespace fuse::test {

/// The kernels without the prelude, whose text belongs to the table of primitives; its names stand first.
inline std::string cuda_body(const Graph& graph, const std::string& profile = "h200") {
  const codegen::Source source = run_pipeline(ir_of(graph), target_profile(profile)).source;
  std::string used = "// uses";
  for (const std::string& name : source.primitives) used += ' ' + name;
  return used + "\n\n" + source.body;
}

}  // namespace fuse::test
