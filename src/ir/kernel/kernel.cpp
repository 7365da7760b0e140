// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/kernel.hpp"

namespace fuse::kernel {

std::string_view to_string(Parallel parallel) {
  switch (parallel) {
    case Parallel::grid:
      return "grid";
    case Parallel::block:
      return "block";
    case Parallel::warp:
      return "warp";
    case Parallel::lane:
      return "lane";
    case Parallel::serial:
      return "serial";
  }
  return "?";
}

Kernel::Kernel() = default;
Kernel::Kernel(const Kernel&) = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(const Kernel&) = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

}  // namespace fuse::kernel
