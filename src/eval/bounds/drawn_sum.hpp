// A sum as a right device may have it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include "eval/bounds/philox.hpp"
#include "eval/bounds/reference_tensor.hpp"

namespace fuse::runtime::reference {

/// A number in [-1, 1], the same for the same variant and value.
inline double drawn_part(std::uint64_t variant, std::int64_t what, double value) {
  return 2 * uniform_f64(static_cast<std::int64_t>(variant), what, 0, std::bit_cast<std::int64_t>(value)) - 1;
}

/// Sums in T and counts what its roundings may add up to. An addition (or product) that rounds errs by at
/// most u |s|, u the unit roundoff and s its result, as if drawn evenly from that range; so the error of all
/// of them has a deviation of at most u sqrt(sum s^2 / 3). A value drawn evenly from u sqrt(sum s^2) about
/// the sum has just that one.
///
/// Another order has other partial sums: threads may bring all terms of one sign together. These reach half
/// of the sum of magnitudes, in the last additions of a tree. Where no order rounds, since all terms are
/// multiples of a number and the sum of magnitudes is few enough times that number, a sum is itself. Where
/// that sum overflows, an order may meet infinities of one or both signs.
template <class T>
class DrawnSum {
 public:
  explicit DrawnSum(std::uint64_t variant) : variant_(variant) {}

  void add(T term) { add(term, static_cast<Wide>(term)); }
  void add_product(T a, T b) {
    const T product = a * b;
    if (rounds(a, b, product)) count(product), multiplies_ = true;
    add(product, static_cast<Wide>(a) * static_cast<Wide>(b));
  }
  /// Adds what other threads have summed: one term, whose own terms count.
  void add_sum(const DrawnSum& other) {
    const Wide total = total_ + other.total_, magnitudes = magnitudes_ + other.magnitudes_;
    const std::int64_t terms = terms_ + other.terms_;
    add(other.value());
    squares_ += other.squares_;
    total_ = total;
    magnitudes_ = magnitudes;
    terms_ = terms;
    last_place_ = std::min(last_place_, other.last_place_);
    rounds_ = rounds_ || other.rounds_;
    multiplies_ = multiplies_ || other.multiplies_;
  }
  T value() const {
    constexpr Wide greatest = static_cast<Wide>(std::numeric_limits<T>::max());
    if (magnitudes_ >= greatest && !std::isnan(total_)) return beyond();
    return std::isfinite(sum_) ? moved(sum_) : sum_;
  }

 private:
  /// Moves by what roundings may add up to, and by one unit in the last place at least: what evaluations do
  /// not move is known to be the same on any device. There is one way to add two terms.
  T moved(T sum) const {
    Wide squares = squares_;
    if (!may_be_exact() && terms_ > 2)
      squares = std::max(squares, magnitudes_ * magnitudes_ / 4 * std::log2(static_cast<Wide>(terms_)));
    if (squares == 0 || (terms_ <= 2 && !multiplies_)) return sum;
    const Wide reach = static_cast<Wide>(std::numeric_limits<T>::epsilon() / 2) * std::sqrt(squares);
    const double part = drawn_part(variant_, 0, static_cast<double>(sum));
    const T result = static_cast<T>(static_cast<Wide>(sum) + part * reach);
    constexpr T infinity = std::numeric_limits<T>::infinity();
    return result == sum ? std::nextafter(sum, part < 0 ? -infinity : infinity) : result;
  }
  /// `wide`: what a product is where T has no such number.
  void add(T term, Wide wide) {
    ++terms_;
    total_ += wide;
    if (std::isfinite(wide)) magnitudes_ += std::fabs(wide);
    // Looked at until it is known that some order rounds: it takes longer than the rest.
    if (!rounds_ && term != 0 && std::isfinite(term)) {
      last_place_ = std::min(last_place_, last_place_of(term));
      rounds_ = !may_be_exact();
    }
    const T sum = sum_ + term;
    // What rounding lost (Knuth's TwoSum).
    const T added = sum - sum_;
    if ((sum_ - (sum - added)) + (term - added) != 0) count(sum);
    sum_ = sum;
  }
  static bool rounds(T a, T b, T product) {
    if constexpr (sizeof(T) < sizeof(double)) {
      return static_cast<double>(a) * static_cast<double>(b) != static_cast<double>(product);
    } else {
      return std::fma(a, b, -product) != 0;
    }
  }
  /// No order rounds: all partial sums are multiples of the last place, and have few enough of them.
  bool may_be_exact() const {
    return !rounds_ && std::ldexp(Wide{1}, last_place_ + std::numeric_limits<T>::digits) > magnitudes_;
  }
  void count(T result) {
    if (std::isfinite(result)) squares_ += static_cast<Wide>(result) * static_cast<Wide>(result);
  }

  /// The exponent of the lowest bit that is set.
  static int last_place_of(T term) {
    int exponent = 0;
    const T fraction = std::frexp(term, &exponent);
    const auto bits =
        static_cast<std::uint64_t>(std::ldexp(std::fabs(fraction), std::numeric_limits<T>::digits));
    return exponent - std::numeric_limits<T>::digits + std::countr_zero(bits);
  }

  /// What partial sums that overflow make of a sum: infinities of either sign, or of both. One of its terms
  /// may be infinite.
  T beyond() const {
    constexpr T infinity = std::numeric_limits<T>::infinity();
    const T total = static_cast<T>(total_);
    const double chance = drawn_part(variant_, 1, static_cast<double>(total));
    if (std::isinf(total)) return chance < 0 ? total : std::numeric_limits<T>::quiet_NaN();
    const T ways[] = {moved(total), infinity, -infinity, std::numeric_limits<T>::quiet_NaN()};
    return ways[static_cast<std::size_t>(2 * chance + 2) % 4];
  }

  std::uint64_t variant_;
  T sum_ = 0;
  Wide squares_ = 0, total_ = 0, magnitudes_ = 0;
  std::int64_t terms_ = 0;
  int last_place_ = 1 << 20;  // higher than that of any term
  bool rounds_ = false;       // some order does
  bool multiplies_ = false;   // a product rounds, unless it is fused with the addition
};

}  // namespace fuse::runtime::reference
