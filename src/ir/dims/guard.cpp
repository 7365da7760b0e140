// SPDX-License-Identifier: Apache-2.0
#include "ir/dims/guard.hpp"

#include <fmt/format.h>

namespace fuse::ir {

std::string Guard::to_string() const {
  std::string text = relation.to_string();
  if (!needed_by.empty()) text += ", for " + needed_by;
  if (location.line != 0) text += fmt::format(" at {}:{}", location.file, location.line);
  return text;
}

}  // namespace fuse::ir
