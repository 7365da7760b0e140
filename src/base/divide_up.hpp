// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse {

/// The quotient of a number that is 0 or more, rounded up; of any number of 64 bits.
constexpr std::int64_t divide_up(std::int64_t number, std::int64_t by) {
  return number / by + (number % by != 0 ? 1 : 0);
}

}  // namespace fuse
