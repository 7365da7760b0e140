// The text that stands before the kernels of the cpu device. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace fuse::codegen {

/// What kernels of the cpu device call, as C++17 without an #include: the interface (plan/cpu_abi.hpp),
/// functions of one value, and the same for the 32 lanes of a warp.
std::string cpu_prelude();

}  // namespace fuse::codegen
