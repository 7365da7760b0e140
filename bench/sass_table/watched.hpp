// The cases that a test compares with the committed counts. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string_view>

namespace fuse::bench::sass {

/// Their names; no more than 60 kernels in all.
std::span<const std::string_view> watched();

}  // namespace fuse::bench::sass
