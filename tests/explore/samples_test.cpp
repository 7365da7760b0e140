// What is concluded from samples of options. SPDX-License-Identifier: Apache-2.0
#include "explore/samples.hpp"

#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include "support/catch.hpp"

using namespace fuse::explore;

TEST_CASE("the median is the middle number, or the mean of the two in the middle", "[explore]") {
  CHECK(median({}) == 0);
  CHECK(median({7}) == 7);
  CHECK(median({9, 1, 5}) == 5);
  CHECK(median({8, 1, 4, 2}) == 3);
}

TEST_CASE("the standard error of a median is that of drawn medians", "[explore]") {
  std::mt19937_64 random(3);
  std::normal_distribution<double> normal(10, 2);
  double errors = 0, squares = 0;
  constexpr int repeats = 2000, count = 101;
  for (int i = 0; i < repeats; ++i) {
    std::vector<double> numbers;
    for (int k = 0; k < count; ++k) numbers.push_back(normal(random));
    errors += error_of_median(numbers) / repeats;
    squares += std::pow(median(numbers) - 10, 2) / repeats;
  }
  CHECK(errors == Approx(std::sqrt(squares)).epsilon(0.1));
}

TEST_CASE("more noise and smaller gains take more samples, by their squares", "[explore]") {
  CHECK(samples_for(0, 0.02) == 1);
  const int usual = samples_for(0.02, 0.02);
  CHECK(usual == 29);  // (3 x 1.2533 x sqrt 2)^2 = 28.3
  CHECK(samples_for(0.04, 0.02) == 114);
  CHECK(samples_for(0.02, 0.01) == 114);
}

/// The samples of one more round: what each option takes, and whether it was disturbed.
static void add_round(Samples& samples, const std::vector<double>& seconds, bool disturbed = false) {
  for (std::size_t i = 0; i < seconds.size(); ++i)
    samples.add(seconds[static_cast<std::size_t>(samples.next())], disturbed);
}

TEST_CASE("an option that is slower in most rounds does not win by a few fast ones", "[explore]") {
  Samples samples(2, {.samples = 9});
  for (int round = 0; round < 9; ++round) {
    add_round(samples, {10, round < 3 ? 1 : 10.5});
  }
  CHECK(samples.done());
  CHECK(samples.best() == 0);
}

TEST_CASE("drift of the machine takes no win away, since both of a pair meet it", "[explore]") {
  Samples samples(3, {.samples = 9});
  for (int round = 0; round < 9; ++round) {
    const double slower = 1 + round;  // the last round takes nine times as long as the first
    add_round(samples, {10 * slower, 9 * slower, 11 * slower});
  }
  CHECK(samples.best() == 1);
}

TEST_CASE("a gain within three standard errors is no win", "[explore]") {
  const auto best_for = [](double gain) {
    Samples samples(2, {.samples = 5});
    for (const double off : {-2.0, -1.0, 0.0, 1.0, 2.0}) add_round(samples, {10 + off, 10 - gain});
    return samples.best();
  };
  // The deviations of the differences are 2, 1, 0, 1, 2: three errors are 3 x 1.2533 x 1.4826 / sqrt 5
  // = 2.49.
  CHECK(best_for(2.45) == 0);
  CHECK(best_for(2.55) == 1);
}

TEST_CASE("the warm-up round says nothing", "[explore]") {
  Samples samples(2, {.samples = 1, .warm_up = true});
  add_round(samples, {100, 1});
  add_round(samples, {2, 3});
  CHECK(samples.done());
  CHECK(samples.median(0) == 2);
  CHECK(samples.median(1) == 3);
  CHECK(samples.best() == 0);
}

TEST_CASE("disturbed samples count as taken, and their pairs are left out", "[explore]") {
  Samples samples(2, {.samples = 3});
  add_round(samples, {10, 9});
  samples.add(60, false);  // the second round begins with the second option
  samples.add(50, true);
  add_round(samples, {10, 9});
  CHECK(samples.done());
  CHECK(samples.median(0) == 10);
  CHECK(samples.best() == 1);
}

TEST_CASE("of equal gains the first option is taken", "[explore]") {
  Samples samples(4, {});
  for (const double seconds : {3.0, 2.0, 2.0, 2.5}) samples.add(seconds, false);
  CHECK(samples.best() == 1);
  samples.reject(1);
  CHECK(samples.best() == 2);
}

TEST_CASE("a difference of roundings is a tie", "[explore]") {
  Samples samples(2, {});
  add_round(samples, {5e-6, 5e-6 * (1 - 1e-12)});
  CHECK(samples.best() == 0);
}

TEST_CASE("the order changes from round to round, since what ran before changes a time", "[explore]") {
  Samples samples(3, {.samples = 3});
  std::vector<int> order;
  for (; !samples.done(); samples.add(1, false)) order.push_back(samples.next());
  CHECK(order == std::vector<int>{0, 1, 2, 1, 2, 0, 2, 0, 1});
}

/// How often each of three options runs in 20 rounds after a warm-up.
static std::vector<int> runs_of(const std::vector<double>& seconds) {
  Samples samples(3, {.samples = 20, .warm_up = true});
  std::vector<int> runs(3);
  while (!samples.done()) {
    const auto option = static_cast<std::size_t>(samples.next());
    ++runs[option];
    samples.add(seconds[option], false);
  }
  CHECK(samples.taken() == 63);  // whatever has lost
  CHECK(samples.best() == 1);
  return runs;
}

TEST_CASE("what is much slower than the default is not run on", "[explore]") {
  CHECK(runs_of({10, 9, 11}) == std::vector<int>{33, 21, 9});
  CHECK(runs_of({10, 9, 13}) == std::vector<int>{38, 21, 4});
  CHECK(runs_of({10, 9, 21}) == std::vector<int>{40, 21, 2});
}

TEST_CASE("an option with too small a gain is not run any more, and may still win", "[explore]") {
  const auto explored = [](double seconds, double least_gain) {
    Samples samples(2, {.samples = 50, .least_gain = least_gain});
    int runs = 0;
    for (int i = 0; !samples.done(); ++i) {
      const bool is_usual = samples.next() == 0;
      runs += !is_usual;
      samples.add((is_usual ? 100 : seconds) + 0.1 * (i % 5), false);
    }
    return std::vector<int>{runs, samples.best()};
  };
  CHECK(explored(99, 0.02) == std::vector<int>{8, 1});
  CHECK(explored(97, 0.02) == std::vector<int>{50, 1});
  CHECK(explored(101, 0.02) == std::vector<int>{8, 0});
  CHECK(explored(99, 0) == std::vector<int>{50, 1});
}

TEST_CASE("no gain is too small before its noise is known", "[explore]") {
  Samples samples(2, {.samples = 7, .least_gain = 0.02});
  for (int i = 0; !samples.done(); ++i) {
    CHECK(samples.next() == (i + i / 2) % 2);
    samples.add(100, false);
  }
}
