// The order in which an evaluation takes the terms of a sum. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <numeric>

#include "eval/bounds/philox.hpp"

namespace fuse::runtime::reference {

/// Ascending for variant 0; else from some term on in steps that meet every term once.
class Order {
 public:
  Order(std::int64_t extent, std::uint64_t variant) : extent_(extent) {
    if (variant == 0 || extent < 2) return;
    const Words drawn = random_words(static_cast<std::int64_t>(variant), 0, 0, extent);
    first_ = drawn[0] % extent;
    step_ = 1 + drawn[1] % (extent - 1);
    while (std::gcd(step_, extent) != 1) ++step_;  // extent + 1 would end it
  }

  bool ascending() const { return first_ == 0 && step_ == 1; }
  /// Which term is the i-th.
  std::int64_t operator()(std::int64_t i) const {
    if (ascending()) return i;
    // The product of two numbers below 2^32 fits; longer sums than that no evaluation ends.
    return static_cast<std::int64_t>((static_cast<std::uint64_t>(first_) +
                                      static_cast<std::uint64_t>(i) * static_cast<std::uint64_t>(step_)) %
                                     static_cast<std::uint64_t>(extent_));
  }

 private:
  std::int64_t extent_, first_ = 0, step_ = 1;
};

}  // namespace fuse::runtime::reference
