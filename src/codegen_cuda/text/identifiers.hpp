// Names in the text of kernels. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace fuse::codegen {

/// A C identifier close to `name` that neither C++ nor the device dialect uses.
std::string c_identifier(std::string_view name);

}  // namespace fuse::codegen
