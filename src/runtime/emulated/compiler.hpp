// The system C++ compiler: found on PATH, run without a shell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace fuse::runtime::emulated {

class Compiler {
 public:
  /// Looks for FUSE_CXX, else c++, g++, clang++ on PATH.
  Compiler();

  /// What was looked for and where it was, one a line.
  const std::string& report() const { return report_; }

  /// Builds each text as a shared library, in parallel, loads it, and removes the files. Returns dlopen's
  /// handles. Throws missing_compiler, or an internal Error with what the compiler said.
  std::vector<void*> build(const std::vector<std::string>& texts) const;

 private:
  std::string path_;  // empty: not found
  std::string report_;
};

}  // namespace fuse::runtime::emulated
