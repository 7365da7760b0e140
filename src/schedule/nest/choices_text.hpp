// The text of choices, read back. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

#include "schedule/nest/choices.hpp"

namespace fuse::schedule {

/// Reads what KernelChoices::to_string writes; keys may stand in any order. Throws Error with code parse,
/// whose message begins with `where` ("decisions: line 4"): the key, and what would be right. The result has
/// values in their ranges, but need not fit a kernel.
KernelChoices parse_choices(std::string_view text, std::string_view where);

}  // namespace fuse::schedule
