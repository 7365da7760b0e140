// Guard: what has to hold for dims and only run time can check; prepare checks it (docs/facts.md).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fuse/error.hpp>
#include <fuse/relation.hpp>
#include <string>

namespace fuse::ir {

struct Guard {
  DimRelation relation{};
  SourceLocation location{};
  std::string needed_by{};  ///< "add %3"; empty for an assumption

  /// "B = T, for add %3 at main.cpp:9"
  std::string to_string() const;
};

}  // namespace fuse::ir
