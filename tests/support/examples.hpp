// The graphs of examples/graphs. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/graph.hpp>
#include <string>

#include "support/paths.hpp"

namespace fuse::test {

inline Graph example(const std::string& name) {
  return Graph::load(source_directory() / "examples/graphs" / (name + ".fuse"));
}

}  // namespace fuse::test
