// The graphs of examples/graphs and tests/cases. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <fuse/graph.hpp>
#include <string>
#include <vector>

#include "support/paths.hpp"

namespace fuse::test {

inline Graph example(const std::string& name) {
  return Graph::load(source_directory() / "examples/graphs" / (name + ".fuse"));
}

/// The graphs of tests/cases, by name. Some are there to be refused.
inline std::vector<std::filesystem::path> case_files() {
  std::vector<std::filesystem::path> files;
  for (const auto& entry : std::filesystem::directory_iterator(source_directory() / "tests/cases")) {
    if (entry.path().extension() == ".fuse") files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace fuse::test
