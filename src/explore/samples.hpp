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
  int samples = 1;        ///< rounds that count
  bool warm_up = false;   ///< one more before them, which is dropped: a first run meets cold caches
  double least_gain = 0;  ///< gains below this share of the default's time are not looked for
  int all() const { return samples + (warm_up ? 1 : 0); }
};

/// What takes so many times as long as the default is not run on.
inline constexpr double slow = 1.25;
/// So many times as much does not need to be seen twice.
inline constexpr double very_slow = 2;
/// Less is seen in none of so many runs.
inline constexpr std::size_t runs_of_a_slow_option = 3;

class Samples {
 public:
  Samples(int options, const Rounds& rounds);

  /// The option of the next sample: all options once, then all of them again from the next one on, since what
  /// ran before changes a time, too. In place of one that has lost it is the default, so that what is known
  /// to be slow is not run on; the number of samples stays.
  int next() const { return lost_[turn()] ? 0 : static_cast<int>(turn()); }
  std::int64_t taken() const { return taken_; }
  bool done() const { return taken_ == static_cast<std::int64_t>(options_) * rounds_.all(); }
  /// The next sample. One that was disturbed counts as taken, and says nothing.
  void add(double seconds, bool disturbed);

  /// Option 0 is the default. Another one wins where it is faster by more than three standard errors of the
  /// median of paired differences, a pair for each round. Of several winners it is the one with the largest
  /// median gain, then the first.
  int best() const;
  /// It has lost elsewhere, and is not run.
  void lose(int option) { lost_[static_cast<std::size_t>(option)] = true; }
  /// An option that cannot be, and never wins.
  void reject(int option) { rejected_[static_cast<std::size_t>(option)] = true; }
  /// The median of what an option took; 0 where no sample says.
  double median(int option) const;

 private:
  std::size_t turn() const { return static_cast<std::size_t>((taken_ + taken_ / options_) % options_); }
  std::vector<double> gains(std::size_t option) const;  // over option 0, one for each round
  double gain(std::size_t option) const;                // 0: no win
  bool has_lost(std::size_t option) const;

  int options_;
  Rounds rounds_;
  std::int64_t taken_ = 0;
  struct Sample {
    double seconds = 0;
    bool valid = false;
  };
  std::vector<std::vector<Sample>> of_;  // by option, then by round
  std::vector<bool> rejected_, lost_;    // by option
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
