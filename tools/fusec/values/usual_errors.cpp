// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/usual_errors.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::fusec {

namespace {

double median_of(std::vector<double> values) {
  if (values.empty()) return 0;
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How many times the expected mean error is still like it. One evaluation tells less of the mean.
double times_expected(std::size_t evaluations) { return evaluations > 1 ? 8 : 32; }

}  // namespace

UsualErrors::UsualErrors(const Answers& answers, const runtime::ReferenceTensor& exact)
    : answers_(answers), exact_(exact) {
  find_medians();
  const double times = times_expected(answers.steady_count);
  for (std::size_t i = 0; i < answers.steady.size(); ++i) {
    const double error = answers.steady[i];
    if (error == 0) continue;
    if (errs_seldom(i)) seldom_ = std::max(seldom_, error);
    steps_.push_back({mean(i), error});
    // What cancelled has an error of its own size or more: the relative one of others is less.
    const bool like_others = errs_seldom(i) || mean(i) <= times * expected(i);
    if (like_others && error < value(i)) relative_ = std::max(relative_, error / value(i));
  }
  std::ranges::sort(steps_, {}, &Step::mean);
  for (std::size_t k = 1; k < steps_.size(); ++k)
    steps_[k].largest = std::max(steps_[k].largest, steps_[k - 1].largest);
}

void UsualErrors::find_medians() {
  std::vector<double> means, parts;
  for (std::size_t i = 0; i < answers_.steady.size(); ++i) {
    if (answers_.steady[i] == 0) continue;
    means.push_back(mean(i));
    if (value(i) > 0) parts.push_back(mean(i) / value(i));
  }
  mostly_exact_ = means.size() * 10 <= answers_.steady.size();
  median_ = median_of(std::move(means));
  median_part_ = median_of(std::move(parts));
}

double UsualErrors::mean(std::size_t i) const {
  return answers_.sums[i] / static_cast<double>(answers_.steady_count);
}

double UsualErrors::value(std::size_t i) const { return static_cast<double>(std::fabs(exact_.get_wide(i))); }

double UsualErrors::expected(std::size_t i) const {
  const double part = median_part_ * value(i);
  return std::isfinite(part) ? std::max(median_, part) : median_;
}

bool UsualErrors::errs_seldom(std::size_t i) const {
  return answers_.steady_count > 1 && mean(i) <= answers_.steady[i] / 6;
}

double UsualErrors::largest_up_to(double mean_error) const {
  const auto beyond = std::ranges::upper_bound(steps_, mean_error, {}, &Step::mean);
  return beyond == steps_.begin() ? 0 : (beyond - 1)->largest;
}

double UsualErrors::bound(std::size_t i) const {
  const double own = answers_.steady[i];
  // What other elements err by tells nothing about one that does not err, as most do not.
  if (mostly_exact_ && own == 0) return 0;
  const double usual = largest_up_to(times_expected(answers_.steady_count) * std::max(mean(i), expected(i)));
  const double room = Answers::factor * std::max(usual, seldom_);
  const bool cancelled = own > 0 && own >= value(i);
  return cancelled ? room : std::min(room, Answers::relative_factor * relative_ * value(i));
}

bool UsualErrors::is_beyond(std::size_t i) const {
  return answers_.diverse && answers_.errors[i] > bound(i) &&
         answers_.errors[i] > Answers::factor * answers_.steady[i];
}

}  // namespace fuse::fusec
