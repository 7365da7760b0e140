// Texts kept under tests/golden. FUSE_UPDATE_GOLDENS=1 rewrites those that a run of the tests meets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

#include "support/catch.hpp"
#include "support/paths.hpp"

namespace fuse::test {

/// `relative_path` is below tests/golden: "graph/ln.fuse".
inline void check_golden(const std::string& relative_path, const std::string& actual) {
  const std::filesystem::path path = source_directory() / "tests" / "golden" / relative_path;
  if (const char* update = std::getenv("FUSE_UPDATE_GOLDENS"); update && std::string(update) == "1") {
    std::filesystem::create_directories(path.parent_path());
    std::ofstream out(path, std::ios::binary);
    out << actual;
    out.close();
    REQUIRE(out.good());
    return;
  }
  std::ifstream in(path, std::ios::binary);
  INFO("golden file " << relative_path << "; FUSE_UPDATE_GOLDENS=1 rewrites it");
  REQUIRE(in.is_open());
  const std::string expected{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  REQUIRE(actual == expected);
}

}  // namespace fuse::test
