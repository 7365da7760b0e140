// SPDX-License-Identifier: Apache-2.0
#include "explore/samples.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::explore {
namespace {

constexpr double deviation_of_mad = 1.4826;  // the standard deviation of a normal distribution, by its MAD
constexpr double error_over_mean = 1.2533;   // of the median, over that of the mean: sqrt(pi / 2)
constexpr double errors_of_a_win = 3;

}  // namespace

double median(std::vector<double> numbers) {
  if (numbers.empty()) return 0;
  const std::size_t half = numbers.size() / 2;
  const auto middle = numbers.begin() + static_cast<std::ptrdiff_t>(half);
  std::nth_element(numbers.begin(), middle, numbers.end());
  if (numbers.size() % 2 == 1) return *middle;
  return (*middle + *std::max_element(numbers.begin(), middle)) / 2;
}

double deviation(const std::vector<double>& numbers) {
  const double middle = median(numbers);
  std::vector<double> apart;
  for (const double each : numbers) apart.push_back(std::abs(each - middle));
  return deviation_of_mad * median(std::move(apart));
}

double error_of_median(const std::vector<double>& numbers) {
  if (numbers.empty()) return 0;
  return error_over_mean * deviation(numbers) / std::sqrt(static_cast<double>(numbers.size()));
}

int samples_for(double noise, double share) {
  const double of_difference = std::sqrt(2.0) * noise;
  const double root = errors_of_a_win * error_over_mean * of_difference / share;
  return std::max(1, static_cast<int>(std::ceil(root * root)));
}

Samples::Samples(int options, const Rounds& rounds)
    : options_(options),
      rounds_(rounds),
      of_(static_cast<std::size_t>(options)),
      rejected_(static_cast<std::size_t>(options)) {}

void Samples::add(double seconds, bool disturbed) {
  const bool warms_up = rounds_.warm_up && taken_ < options_;
  if (!warms_up) of_[static_cast<std::size_t>(next())].push_back({seconds, !disturbed});
  ++taken_;
}

double Samples::median(int option) const {
  std::vector<double> valid;
  for (const Sample& sample : of_[static_cast<std::size_t>(option)]) {
    if (sample.valid) valid.push_back(sample.seconds);
  }
  return explore::median(std::move(valid));
}

double Samples::gain(int option) const {
  const std::vector<Sample>&usual = of_[0], &own = of_[static_cast<std::size_t>(option)];
  std::vector<double> gains;
  for (std::size_t round = 0; round < std::min(usual.size(), own.size()); ++round) {
    if (usual[round].valid && own[round].valid) gains.push_back(usual[round].seconds - own[round].seconds);
  }
  const double middle = explore::median(gains);
  return middle > errors_of_a_win * error_of_median(gains) ? middle : 0;
}

int Samples::best() const {
  int best = 0;
  double most = 0;
  for (int option = 1; option < options_; ++option) {
    const double own = rejected_[static_cast<std::size_t>(option)] ? 0 : gain(option);
    if (own > most) {
      most = own;
      best = option;
    }
  }
  return best;
}

}  // namespace fuse::explore
