// The text that errors about decisions begin with. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <string>

namespace fuse::schedule {

/// "decisions: line 4"
inline std::string line_of_decisions(int line) { return fmt::format("decisions: line {}", line); }

}  // namespace fuse::schedule
