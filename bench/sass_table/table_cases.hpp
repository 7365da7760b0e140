// The cases of sass_table. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <fuse/graph.hpp>
#include <string>
#include <vector>

namespace fuse::bench::sass {

struct TableCase {
  std::string name;     ///< "softmax.bf16.65536x1024"
  std::string builder;  ///< "softmax"; of examples/graphs: "example"
  std::string dtype;
  std::vector<std::int64_t> dims;
  std::function<Graph()> build;
};

/// Throws std::runtime_error where a file of examples/graphs cannot be read.
std::vector<TableCase> table_cases();

}  // namespace fuse::bench::sass
