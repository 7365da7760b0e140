// A sum as a right device may have it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "runtime/reference/philox.hpp"
#include "runtime/reference/reference_tensor.hpp"

namespace fuse::runtime::reference {

/// In [-1, 1], the same for the same variant and value.
inline double drawn_part(std::uint64_t variant, std::int64_t what, double value) {
  return 2 * uniform_f64(static_cast<std::int64_t>(variant), what, 0, std::bit_cast<std::int64_t>(value)) - 1;
}

/// Sums in T and counts what its roundings may add up to. An addition (or product) that rounds errs by at
/// most u |s|, u the unit roundoff and s its result, as if drawn evenly from that range; so the error of all
/// of them has a deviation of at most u sqrt(sum s^2 / 3). A value drawn evenly from u sqrt(sum s^2) about
/// the sum has just that one. A sum that never rounds is itself.
template <class T>
class DrawnSum {
 public:
  explicit DrawnSum(std::uint64_t variant) : variant_(variant) {}

  void add(T term) {
    const T sum = sum_ + term;
    // What rounding lost (Knuth's TwoSum).
    const T added = sum - sum_;
    if ((sum_ - (sum - added)) + (term - added) != 0) count(sum);
    sum_ = sum;
  }
  void add_product(T a, T b) {
    const T product = a * b;
    if (std::fma(a, b, -product) != 0) count(product);
    add(product);
  }
  T value() const {
    if (squares_ == 0 || !std::isfinite(sum_)) return sum_;
    const Wide reach = static_cast<Wide>(std::numeric_limits<T>::epsilon() / 2) * std::sqrt(squares_);
    return static_cast<T>(static_cast<Wide>(sum_) +
                          drawn_part(variant_, 0, static_cast<double>(sum_)) * reach);
  }

 private:
  void count(T result) {
    if (std::isfinite(result)) squares_ += static_cast<Wide>(result) * static_cast<Wide>(result);
  }

  std::uint64_t variant_;
  T sum_ = 0;
  Wide squares_ = 0;
};

}  // namespace fuse::runtime::reference
