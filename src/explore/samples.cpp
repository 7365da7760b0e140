// SPDX-License-Identifier: Apache-2.0
#include "explore/samples.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::explore {
namespace {

constexpr double deviation_of_mad = 1.4826;  // the standard deviation of a normal distribution, by its MAD
constexpr double error_over_mean = 1.2533;   // of the median, over that of the mean: sqrt(pi / 2)
constexpr double errors_of_a_win = 3;
/// Less is a difference of roundings in the times of marks.
constexpr double least_share = 1e-6;
/// So many rounds are looked at one by one, and then each of so many.
constexpr std::int64_t checked_each_round = 12;
/// Before so many rounds, the error of a median is not known well enough to say that a gain is too small.
constexpr std::size_t rounds_of_a_loss = 8;

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
      rejected_(static_cast<std::size_t>(options)),
      lost_(static_cast<std::size_t>(options)) {}

void Samples::add(double seconds, bool disturbed) {
  const bool warms_up = rounds_.warm_up && taken_ < options_;
  if (!warms_up) of_[turn()].push_back({seconds, !disturbed && !lost_[turn()]});
  ++taken_;
  // Later rounds change little of what is known, and a run does not wait for that.
  const std::int64_t rounds = taken_ / options_;
  if (taken_ % options_ > 0 || (rounds > checked_each_round && rounds % checked_each_round > 0)) return;
  for (std::size_t option = 1; option < lost_.size(); ++option)
    lost_[option] = lost_[option] || has_lost(option);
}

double Samples::median(int option) const {
  std::vector<double> valid;
  for (const Sample& sample : of_[static_cast<std::size_t>(option)]) {
    if (sample.valid) valid.push_back(sample.seconds);
  }
  return explore::median(std::move(valid));
}

std::vector<double> Samples::gains(std::size_t option) const {
  const std::vector<Sample>&usual = of_[0], &own = of_[option];
  std::vector<double> result;
  for (std::size_t round = 0; round < std::min(usual.size(), own.size()); ++round) {
    if (usual[round].valid && own[round].valid) result.push_back(usual[round].seconds - own[round].seconds);
  }
  return result;
}

double Samples::gain(std::size_t option) const {
  const std::vector<double> gains = this->gains(option);
  const double middle = explore::median(gains);
  return middle > std::max(errors_of_a_win * error_of_median(gains), least_share * median(0)) ? middle : 0;
}

/// Whether more rounds will not make it win, by all that is known of it.
bool Samples::has_lost(std::size_t option) const {
  const std::vector<double> gains = this->gains(option);
  const double usual = median(0);
  if (gains.empty()) return false;
  const double most = *std::max_element(gains.begin(), gains.end());
  if (most < (1 - (gains.size() < runs_of_a_slow_option ? very_slow : slow)) * usual) return true;
  return gains.size() >= rounds_of_a_loss &&
         explore::median(gains) + errors_of_a_win * error_of_median(gains) < rounds_.least_gain * usual;
}

int Samples::best() const {
  int best = 0;
  double most = 0;
  for (int option = 1; option < options_; ++option) {
    const auto at = static_cast<std::size_t>(option);
    const double own = rejected_[at] ? 0 : gain(at);
    if (own > most) {
      most = own;
      best = option;
    }
  }
  return best;
}

}  // namespace fuse::explore
