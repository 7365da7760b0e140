// Which sources this library was built from; written by cmake/FuseSourceId.cmake.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string_view>

namespace fuse {

/// A hash of all sources and headers: what one build of fuse keeps, another one does not take for its own.
std::string_view source_id();

}  // namespace fuse
