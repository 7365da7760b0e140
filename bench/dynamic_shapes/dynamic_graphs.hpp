// The graphs of dynamic_shapes: what people run with shapes that they do not know beforehand.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/graph.hpp>
#include <string>
#include <vector>

namespace fuse::bench {

struct DynamicGraph {
  std::string name;
  Graph graph;
};

std::vector<DynamicGraph> dynamic_graphs();

}  // namespace fuse::bench
