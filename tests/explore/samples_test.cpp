// What is concluded from samples of options. SPDX-License-Identifier: Apache-2.0
#include "explore/samples.hpp"

#include <cmath>
#include <random>

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

TEST_CASE("an option that is slower in most rounds does not win by a few fast ones", "[explore]") {
  Samples samples(2, {.samples = 9});
  for (int round = 0; round < 9; ++round) {
    samples.add(10, false);
    samples.add(round < 3 ? 1 : 10.5, false);
  }
  CHECK(samples.done());
  CHECK(samples.best() == 0);
}

TEST_CASE("drift of the machine takes no win away, since both of a pair meet it", "[explore]") {
  Samples samples(3, {.samples = 9});
  for (int round = 0; round < 9; ++round) {
    const double slower = 1 + round;  // the last round takes nine times as long as the first
    samples.add(10 * slower, false);
    samples.add(9 * slower, false);
    samples.add(11 * slower, false);
  }
  CHECK(samples.best() == 1);
}

TEST_CASE("a gain within three standard errors is no win", "[explore]") {
  const auto best_for = [](double gain) {
    Samples samples(2, {.samples = 5});
    for (const double off : {-2.0, -1.0, 0.0, 1.0, 2.0}) {
      samples.add(10 + off, false);
      samples.add(10 - gain, false);
    }
    return samples.best();
  };
  // The deviations of the differences are 2, 1, 0, 1, 2: three errors are 3 x 1.2533 x 1.4826 / sqrt 5
  // = 2.49.
  CHECK(best_for(2.45) == 0);
  CHECK(best_for(2.55) == 1);
}

TEST_CASE("the warm-up round says nothing", "[explore]") {
  Samples samples(2, {.samples = 1, .warm_up = true});
  samples.add(100, false);
  samples.add(1, false);
  samples.add(2, false);
  samples.add(3, false);
  CHECK(samples.done());
  CHECK(samples.median(0) == 2);
  CHECK(samples.median(1) == 3);
  CHECK(samples.best() == 0);
}

TEST_CASE("disturbed samples count as taken, and their pairs are left out", "[explore]") {
  Samples samples(2, {.samples = 3});
  samples.add(10, false);
  samples.add(9, false);
  samples.add(50, true);
  samples.add(60, false);
  samples.add(10, false);
  samples.add(9, false);
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
