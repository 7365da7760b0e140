// SPDX-License-Identifier: Apache-2.0
#include "ir/kernel/kernel.hpp"

#include <limits>

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

Constant identity_of(const Reduction& reduction, std::size_t component) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  const DType dtype = reduction.state[component];
  const auto [low, high] = integer_range(dtype);
  const Constant lowest{-infinity, low}, highest{infinity, high};
  // The position of no element comes after every other, so that any element wins a tie against it.
  if (component > 0) return highest;
  switch (info(reduction.op).identity) {
    case ir::Identity::zero:
      return {0, 0};
    case ir::Identity::one:
      return {1, 1};
    case ir::Identity::lowest:
      return lowest;
    case ir::Identity::highest:
      return highest;
    case ir::Identity::none:
      break;
  }
  // A pair starts from the identity of the reduction that shares its combiner: argmax from max's.
  return info(reduction.op).combine == ir::Op::max ? lowest : highest;
}

Kernel::Kernel() = default;
Kernel::Kernel(const Kernel&) = default;
Kernel::Kernel(Kernel&&) noexcept = default;
Kernel& Kernel::operator=(const Kernel&) = default;
Kernel& Kernel::operator=(Kernel&&) noexcept = default;
Kernel::~Kernel() = default;

}  // namespace fuse::kernel
