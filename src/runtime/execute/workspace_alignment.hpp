// The alignment of a workspace, which a run checks and a plan of its memory counts on.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::runtime {

/// In bytes, of a workspace and of each value in it.
constexpr std::int64_t workspace_alignment = 256;

}  // namespace fuse::runtime
