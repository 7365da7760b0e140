// The system C++ compiler: found on PATH, run without a shell.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "os/temporary_folder.hpp"

namespace fuse::runtime::emulated {

class HostCompiler {
 public:
  /// Looks for FUSE_CXX, else c++, g++, clang++ on PATH. `optimization`: its -O, 0 to 3; `machine`: options
  /// that say what it builds for; `device`: whose kernels it builds, for messages.
  explicit HostCompiler(int optimization = 2, std::vector<std::string> machine = {},
                        std::string device = "the emulated device");

  /// What was looked for and where it was, one per line.
  const std::string& report() const { return report_; }

  const std::string& path() const { return path_; }  ///< empty: not found
  /// Throws missing_compiler with what was looked for.
  void require() const;
  /// The first line that `--version` prints; empty where it cannot be asked.
  std::string version() const;

  /// Path, file and options: with the text, all that decides what is built.
  std::string build_key() const;

  /// Builds each text as a shared library, in parallel, and returns their bytes. Throws missing_compiler; io,
  /// where the temporary directory is to blame; broken_install, where the compiler is; and else an internal
  /// Error with what the compiler said.
  std::vector<std::vector<char>> build(const std::vector<std::string>& texts, bool debug_info = false) const;

 private:
  std::string compile(const std::vector<std::string>& texts, const TemporaryFolder& folder,
                      bool debug_info) const;
  [[noreturn]] void fail(const std::string& complaint, const TemporaryFolder& folder) const;

  std::vector<std::string> command(const TemporaryFolder& folder, std::size_t i, bool debug_info) const;

  std::string path_;
  std::string device_;
  std::string level_;                 // "-O2"
  std::vector<std::string> machine_;  // "-march=x86-64-v3"
  std::string report_;
};

}  // namespace fuse::runtime::emulated
