// Texts kept under tests/golden. FUSE_UPDATE_GOLDENS=1 rewrites those that a run of the tests meets.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/paths.hpp"
#include "support/sanitized.hpp"

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

/// The lines are those of the file; under a sanitizer, which makes fewer, the first ones.
inline void check_golden_lines(const std::string& relative_path, const std::vector<std::string>& ours) {
  if (const char* update = std::getenv("FUSE_UPDATE_GOLDENS"); update && std::string(update) == "1") {
    REQUIRE_FALSE(sanitized());
    check_golden(relative_path, fmt::format("{}\n", fmt::join(ours, "\n")));
    return;
  }
  std::ifstream in(source_directory() / "tests" / "golden" / relative_path);
  REQUIRE(in.is_open());
  std::vector<std::string> differ;
  std::string line;
  for (const std::string& own : ours) {
    std::getline(in, line);
    if (line != own) differ.push_back(fmt::format("was {}\nis  {}", line, own));
  }
  if (!sanitized() && std::getline(in, line)) differ.push_back(fmt::format("was {}\nis no more", line));
  const auto shown = static_cast<std::ptrdiff_t>(std::min<std::size_t>(differ.size(), 12));
  INFO(differ.size() << " of " << ours.size() << " lines of " << relative_path << " differ:\n"
                     << fmt::format("{}", fmt::join(differ.begin(), differ.begin() + shown, "\n")));
  CHECK(differ.empty());
}

}  // namespace fuse::test
