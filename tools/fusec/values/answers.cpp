// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/answers.hpp"

#include <algorithm>
#include <cmath>

namespace fuse::fusec {

using runtime::ReferenceTensor;
using runtime::Wide;

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

}  // namespace fuse::fusec
