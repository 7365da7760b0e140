// Built library: what a C++ compiler made of emitted text, opened in this process.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

namespace fuse::runtime {

/// The shared library with these bytes, which `maker` built; closed with the last copy. Throws broken_install
/// with what the dynamic linker said, and io where there is no room for the file.
std::shared_ptr<void> open_built_library(const std::vector<char>& image, const std::string& maker);

}  // namespace fuse::runtime
