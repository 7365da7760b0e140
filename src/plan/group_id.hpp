// The number of a group of ops, which plans and errors name. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::schedule {

using GroupId = std::uint32_t;
inline constexpr GroupId no_group = ~GroupId{0};

}  // namespace fuse::schedule
