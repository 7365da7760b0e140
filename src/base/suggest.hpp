// Names near to one that was not found, for hints.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace fuse {

/// "did you mean 'gamma', 'beta'?", at most three; "" where nothing is near.
std::string did_you_mean(const std::vector<std::string>& names, std::string_view wanted);
/// "did you mean 'gamma'?"; where nothing is near, "there are 'x', 'gamma'" (at most eight) or, for none, "".
std::string nearest_names(const std::vector<std::string>& names, std::string_view wanted);

}  // namespace fuse
