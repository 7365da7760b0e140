// Contest: how long several ways to run a graph take, in turns, so that a slow moment of the machine meets
// all of them. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <fuse/device.hpp>
#include <memory>
#include <span>
#include <vector>

#include "runtime/explore/variant.hpp"

namespace fuse::bench {

using Variants = std::vector<std::shared_ptr<runtime::Variant>>;

class Contest {
 public:
  /// Runs each of them in each round, for `least_seconds` at least, after one round that does not count.
  Contest(const Variants&, Stream&, std::span<const BufferView>, int rounds, double least_seconds);

  /// The median of the seconds of one run.
  double seconds(std::size_t variant) const;
  /// The median of how many times as long the first takes as the second, in rounds.
  double ratio(std::size_t first, std::size_t second) const;
  /// Half of what lies between the quartiles of that ratio.
  double spread(std::size_t first, std::size_t second) const;

 private:
  std::vector<double> ratios(std::size_t first, std::size_t second) const;

  std::vector<std::vector<double>> seconds_;  // by variant, then by round
};

/// How alike two lists order the same things, from -1 to 1 (Spearman).
double rank_correlation(const std::vector<double>&, const std::vector<double>&);

}  // namespace fuse::bench
