// SPDX-License-Identifier: Apache-2.0
#include "answers.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::fusec {

using runtime::ReferenceTensor;
using runtime::Wide;

namespace {

/// Errors of most elements are below this, on average over the evaluations.
double most_err_below(std::vector<double> sums, std::size_t count) {
  if (sums.empty()) return 0;
  const auto at = sums.begin() + static_cast<std::ptrdiff_t>(sums.size() * 9 / 10);
  std::nth_element(sums.begin(), at, sums.end());
  return *at / static_cast<double>(count);
}

}  // namespace

std::uint8_t Answers::kind_of(double value) {
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return value > 0 ? positive : negative;
  return finite;
}

void Answers::take_floats(const ReferenceTensor& values, const ReferenceTensor& exact, bool steady_one) {
  const std::size_t count = values.element_count();
  kinds.resize(count);
  for (std::vector<double>* each : {&errors, &steady, &sums}) each->resize(count);
  steady_count += steady_one;
  for (std::size_t i = 0; i < count; ++i) {
    kinds[i] |= kind_of(values.get(i));
    const auto error = static_cast<double>(std::fabs(values.get_wide(i) - exact.get_wide(i)));
    if (!std::isfinite(error) || error == 0) continue;
    errors[i] = std::max(errors[i], error);
    if (!steady_one) continue;
    steady[i] = std::max(steady[i], error);
    sums[i] += error;
  }
}

void Answers::take_integers(const ReferenceTensor& values) {
  const auto elements = values.integer();
  if (least.empty()) {
    least.assign(elements.begin(), elements.end());
    greatest = least;
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    least[i] = std::min(least[i], elements[i]);
    greatest[i] = std::max(greatest[i], elements[i]);
  }
}

double Answers::largest() const {
  return steady.empty() ? 0 : *std::max_element(steady.begin(), steady.end());
}

bool Answers::all_finite() const {
  return std::ranges::all_of(kinds, [](std::uint8_t each) { return each == finite; });
}

double Answers::own(std::size_t i) const {
  return std::max(own_factor * steady[i], decided_factor * errors[i]);
}

bool Answers::may_be(std::size_t i, std::int64_t value) const {
  const auto low = static_cast<Wide>(least[i]), high = static_cast<Wide>(greatest[i]);
  // Of neighbours a rounding chose one, and there is no third.
  const Wide beyond = high - low <= 1 ? 0 : (high - low) * static_cast<Wide>(decided_factor - 1);
  return low - beyond <= static_cast<Wide>(value) && static_cast<Wide>(value) <= high + beyond;
}

Answers::Usual Answers::usual(const ReferenceTensor& exact) const {
  // One evaluation does not tell what errs in all of them, so it takes more to leave an element out.
  const double far =
      (steady_count > 1 ? 8 : 32) * most_err_below(sums, std::max<std::size_t>(1, steady_count));
  Usual result{.mostly_exact = far == 0};
  for (std::size_t i = 0; i < steady.size(); ++i) {
    if (steady[i] == 0) continue;
    const double mean = sums[i] / static_cast<double>(steady_count);
    if (far > 0 && mean > far && mean > steady[i] / 4) continue;
    result.abs = std::max(result.abs, steady[i]);
    // What cancelled has an error of its own size or more: the relative one of others is less.
    const auto wanted = static_cast<double>(std::fabs(exact.get_wide(i)));
    if (steady[i] < wanted) result.rel = std::max(result.rel, steady[i] / wanted);
  }
  return result;
}

double Answers::Usual::bound(const Answers& answers, std::size_t i, double wanted) const {
  // What other elements err by tells nothing about one that does not err, as most do not.
  if (mostly_exact && answers.steady[i] == 0) return 0;
  const bool cancelled = answers.steady[i] > 0 && answers.steady[i] >= std::fabs(wanted);
  return cancelled ? factor * abs : std::min(factor * abs, relative_factor * rel * std::fabs(wanted));
}

bool Answers::Usual::is_beyond(const Answers& answers, std::size_t i, const ReferenceTensor& exact) const {
  return answers.diverse && answers.errors[i] > bound(answers, i, exact.get(i)) &&
         answers.errors[i] > factor * answers.steady[i];
}

}  // namespace fuse::fusec
