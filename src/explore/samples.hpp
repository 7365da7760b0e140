// Samples: how long each option of a decision took in each round, and which option is best.
//
//   round     option 0   option 1   option 2
//   warm-up   dropped    dropped    dropped
//   1         10.1 us     8.0 us    10.0 us      all options once per round, so that a slow spell of the
//   2         11.0 us     8.9 us    11.2 us      machine meets all of them
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

namespace fuse::explore {

/// How often each configuration runs. It is fixed before the first one runs, and with it the number of runs.
struct Rounds {
  int samples = 1;       ///< rounds that count
  bool warm_up = false;  ///< one more before them, which is dropped: a first run meets cold caches
  int all() const { return samples + (warm_up ? 1 : 0); }
};

class Samples {
 public:
  Samples(int options, const Rounds& rounds);

  /// The option of the next sample: all options once, then all of them again.
  int next() const { return static_cast<int>(taken_ % options_); }
  std::int64_t taken() const { return taken_; }
  bool done() const { return taken_ == static_cast<std::int64_t>(options_) * rounds_.all(); }
  /// The next sample. One that was disturbed counts as taken, and says nothing.
  void add(double seconds, bool disturbed);

  /// Option 0 is the default. Another one wins where it is faster by more than three standard errors of the
  /// median of paired differences, a pair for each round. Of several winners it is the one with the largest
  /// median gain, then the first.
  int best() const;
  /// An option that cannot be, and never wins.
  void reject(int option) { rejected_[static_cast<std::size_t>(option)] = true; }
  /// The median of what an option took; 0 where no sample says.
  double median(int option) const;

 private:
  double gain(int option) const;  // over option 0; 0: no win

  int options_;
  Rounds rounds_;
  std::int64_t taken_ = 0;
  struct Sample {
    double seconds = 0;
    bool valid = false;
  };
  std::vector<std::vector<Sample>> of_;  // by option, then by round
  std::vector<bool> rejected_;           // by option
};

/// The middle of some numbers; of an even count, the mean of the two in the middle. 0 for none.
double median(std::vector<double> numbers);
/// Their standard deviation, by their median absolute deviation from the median.
double deviation(const std::vector<double>& numbers);
/// The standard error of their median, by their median absolute deviation.
double error_of_median(const std::vector<double>& numbers);

/// The samples that show a gain of `share`, where single samples spread by `noise` (their standard deviation
/// as a share of the time): three standard errors of the median difference are no more than it.
int samples_for(double noise, double share);

}  // namespace fuse::explore
