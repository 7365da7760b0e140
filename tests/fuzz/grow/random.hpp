// Random: numbers that depend on a seed alone, the same with every library (std's distributions differ).
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace fuse::fuzz {

/// The finaliser of splitmix64 (Steele, Lea and Flood).
constexpr std::uint64_t mix(std::uint64_t z) {
  z += 0x9e3779b97f4a7c15U;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
  z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
  return z ^ (z >> 31);
}

/// The seed of program `index` of a run.
constexpr std::uint64_t seed_of(std::uint64_t run_seed, std::uint64_t index) {
  return mix(mix(run_seed) ^ index * 0xd1342543de82ef95U);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}

  std::uint64_t bits() { return mix(state_ += 0x9e3779b97f4a7c15U); }
  /// In [0, n); n > 0. The bias of the remainder is far below what a test could see.
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(bits() % n); }
  /// In [low, high].
  std::int64_t between(std::int64_t low, std::int64_t high) {
    return low + static_cast<std::int64_t>(bits() % (static_cast<std::uint64_t>(high - low) + 1));
  }
  /// In [0, 1), a multiple of 2^-53.
  double unit() { return static_cast<double>(bits() >> 11) * 0x1p-53; }
  bool chance(double probability) { return unit() < probability; }

  template <class Range>
  const auto& pick(const Range& values) {
    return values[below(std::size(values))];
  }
  template <class T>
  T pick(std::initializer_list<T> values) {
    return values.begin()[below(values.size())];
  }
  /// An index, in proportion to the weights; they are not all 0.
  std::size_t weighted(std::span<const double> weights) {
    double sum = 0;
    for (const double weight : weights) sum += weight;
    double at = unit() * sum;
    std::size_t last = 0;
    for (std::size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      last = i;
      if ((at -= weights[i]) < 0) break;
    }
    return last;
  }

 private:
  std::uint64_t state_;
};

}  // namespace fuse::fuzz
