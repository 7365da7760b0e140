// fusec merge: one tuning of those of several machines. SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <fuse/explore.hpp>
#include <vector>

#include "base/quoting.hpp"
#include "fusec/commands.hpp"
#include "fusec/common.hpp"

namespace fuse::fusec {

int execute(const MergeOptions& options) {
  try_file("--output", options.output);
  std::vector<Tuning> found;
  for (const std::string& file : options.files) {
    try {
      found.push_back(Tuning::load(file));
    } catch (const Error& error) {
      if (error.code() != ErrorCode::parse) throw;  // others name the file
      user_error(error.code(), fmt::format("{}: {}", file, error.info().message), error.info().hint);
    }
  }
  write_file(options.output, Tuning::merge(found).text());
  fmt::print("merged {}\n", counted(found.size(), "file"));
  return 0;
}

}  // namespace fuse::fusec
