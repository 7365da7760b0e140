// What the tests of the kernel IR share: one lowered kernel of a graph.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "codegen_cuda/lower/lower.hpp"
#include "schedule/schedule_support.hpp"

namespace fuse::test {

/// Launch `index` of the graph's last segment, as its nest lowers it, verified.
inline kernel::Kernel lowered(const Graph& graph, const schedule::Choices& choices, std::size_t index = 0) {
  const OneSegment one(graph);
  const schedule::Schedule schedule = one.make(choices);
  kernel::Kernel kernel = codegen::lower(one.graph, schedule, index, "k").kernel;
  kernel::verify(kernel, target_profile("h200").shared_per_block);
  return kernel;
}

}  // namespace fuse::test
