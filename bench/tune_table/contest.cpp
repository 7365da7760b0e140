// SPDX-License-Identifier: Apache-2.0
#include "tune_table/contest.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "measure.hpp"

namespace fuse::bench {
namespace {

/// Equal numbers share the mean of their places.
std::vector<double> ranks(const std::vector<double>& numbers) {
  std::vector<std::size_t> order(numbers.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return numbers[a] < numbers[b]; });
  std::vector<double> result(numbers.size());
  for (std::size_t first = 0; first < order.size();) {
    std::size_t end = first + 1;
    while (end < order.size() && numbers[order[end]] == numbers[order[first]]) ++end;
    const double mean = static_cast<double>(first + end - 1) / 2;
    for (; first < end; ++first) result[order[first]] = mean;
  }
  return result;
}

}  // namespace

Contest::Contest(const Variants& variants, Stream& stream, std::span<const BufferView> buffers, int rounds,
                 double least_seconds)
    : seconds_(variants.size()) {
  const auto run = [&](runtime::Variant& variant) {
    variant.run(stream, buffers, 1).throw_if_failed();
    stream.synchronize().throw_if_failed();
  };
  const int repeats = repeats_for(least_seconds, [&] { run(*variants.front()); });
  for (int round = 0; round <= rounds; ++round) {
    for (std::size_t turn = 0; turn < variants.size(); ++turn) {
      const std::size_t i = (turn + static_cast<std::size_t>(round)) % variants.size();
      const Times times = time_once([&] {
        for (int repeat = 0; repeat < repeats; ++repeat) run(*variants[i]);
      });
      if (round > 0) seconds_[i].push_back(times.wall / repeats);
    }
  }
}

double Contest::seconds(std::size_t variant) const { return median(seconds_[variant]); }

std::vector<double> Contest::ratios(std::size_t first, std::size_t second) const {
  std::vector<double> result;
  for (std::size_t round = 0; round < seconds_[first].size(); ++round)
    result.push_back(seconds_[first][round] / seconds_[second][round]);
  return result;
}

double Contest::ratio(std::size_t first, std::size_t second) const { return median(ratios(first, second)); }

double Contest::spread(std::size_t first, std::size_t second) const {
  std::vector<double> all = ratios(first, second);
  std::sort(all.begin(), all.end());
  return (all[all.size() * 3 / 4] - all[all.size() / 4]) / 2;
}

double rank_correlation(const std::vector<double>& a, const std::vector<double>& b) {
  const std::vector<double> x = ranks(a), y = ranks(b);
  const double middle = static_cast<double>(a.size() - 1) / 2;
  double both = 0, of_x = 0, of_y = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    both += (x[i] - middle) * (y[i] - middle);
    of_x += (x[i] - middle) * (x[i] - middle);
    of_y += (y[i] - middle) * (y[i] - middle);
  }
  return of_x > 0 && of_y > 0 ? both / std::sqrt(of_x * of_y) : 0;
}

}  // namespace fuse::bench
