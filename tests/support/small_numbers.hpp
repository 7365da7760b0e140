// Numbers from -1 to 1 for tests of products, many of them: in tests, which are not optimised, a draw by the
// standard library takes longer than the products. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace fuse::test {

/// A linear congruential generator: the same numbers for the same seed.
class SmallNumbers {
 public:
  explicit SmallNumbers(unsigned seed) : state_(seed) {}
  float operator()() {
    state_ = state_ * 6364136223846793005 + 1442695040888963407;
    return static_cast<float>(static_cast<std::int32_t>(state_ >> 32)) * 0x1p-31F;
  }

 private:
  std::uint64_t state_;
};

}  // namespace fuse::test
