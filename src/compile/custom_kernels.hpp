// Whose mistake it is that a program's text does not build. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>

#include "compile/pipeline/pipeline.hpp"
#include "plan/source.hpp"

namespace fuse::runtime {

/// For a program whose text `build` refused: builds each of the user's kernels alone, and throws a user Error
/// with the line of its call for the first one that is refused too.
void check_custom_kernels(const Compiled& compiled, const std::function<void(const codegen::Source&)>& build);

}  // namespace fuse::runtime
