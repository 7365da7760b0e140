// Sums in whatever order: gamma(n) sum |x| about the sum in double, or nothing where every order is exact.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>

#include "eval/bounds/error_bound.hpp"
#include "fuzz/judge/error_rules.hpp"
#include "schedule/segments/online_softmax.hpp"

namespace fuse::fuzz {
namespace {

/// The exponent of the lowest bit that is set in any element, or the greatest int for all zeros.
int lowest_bit(const ReferenceTensor& tensor) {
  int lowest = std::numeric_limits<int>::max();
  for (const double value : tensor.real()) {
    if (value == 0 || !std::isfinite(value)) continue;
    int exponent = 0;
    const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
    lowest = std::min(lowest, exponent - 53 + std::countr_zero(mantissa));
  }
  return lowest;
}

ReferenceTensor map_to_f64(const Enclosure& x, auto f) {
  ReferenceTensor result(f64, x.centre.shape());
  const auto low = x.least().real(), centre = x.centre.real(), high = x.greatest().real();
  const auto out = result.elements<double>();
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(low[i], centre[i], high[i]);
  return result;
}

double finite_or_zero(double value) { return std::isfinite(value) ? value : 0; }

/// sum of x, or of x y: the least and the greatest sum in double, what rounding may add, how many terms.
struct Sums {
  ReferenceTensor least, centre, greatest;
  ReferenceTensor magnitude;  ///< sum |x| or |x y| over what is finite
  ReferenceTensor terms;
};

Sums one_operand(const Rule& rule) {
  const Enclosure& x = rule.operand(0);
  const auto sum = [&](auto f) {
    const ReferenceTensor mapped = map_to_f64(x, f);
    return rule.apply({&mapped}, f64);
  };
  return {.least = sum([](double low, double, double) { return low; }),
          .centre = sum([](double, double centre, double) { return centre; }),
          .greatest = sum([](double, double, double high) { return high; }),
          .magnitude = sum([](double low, double, double high) {
            return std::max(std::fabs(finite_or_zero(low)), std::fabs(finite_or_zero(high)));
          }),
          .terms = sum([](double, double, double) { return 1.0; })};
}

Sums two_operands(const Rule& rule) {
  const Enclosure &a = rule.operand(0), &b = rule.operand(1);
  const auto product = [&](auto f, auto g) {
    const ReferenceTensor left = map_to_f64(a, f), right = map_to_f64(b, g);
    return rule.apply({&left, &right}, f64);
  };
  const auto centre = [](double, double c, double) { return c; };
  const auto size = [](double low, double, double high) {
    return std::max(std::fabs(finite_or_zero(low)), std::fabs(finite_or_zero(high)));
  };
  const auto radius = [](double low, double c, double high) {
    return same(low, high) ? 0.0 : std::max(high - c, c - low);
  };
  const auto absolute = [](double, double c, double) { return std::fabs(finite_or_zero(c)); };
  const auto one = [](double, double, double) { return 1.0; };
  Sums sums{.least = product(centre, centre),
            .centre = ReferenceTensor(),
            .greatest = ReferenceTensor(),
            .magnitude = product(size, size),
            .terms = product(one, one)};
  sums.centre = sums.greatest = sums.least;
  if (rule.operands_exact()) return sums;
  // |a b - a' b'| <= |a'| |b - b'| + |a - a'| |b|
  const ReferenceTensor first = product(size, radius), second = product(radius, absolute);
  // An infinity times what may be 0 on a device, and is not here, or the other way round.
  const auto infinite = [](double, double c, double) { return std::isinf(c) ? 1.0 : 0.0; };
  const auto inexact = [](double low, double, double high) { return same(low, high) ? 0.0 : 1.0; };
  const ReferenceTensor third = product(infinite, inexact), fourth = product(inexact, infinite);
  for (std::size_t i = 0; i < sums.centre.element_count(); ++i) {
    const double error = first.real()[i] + second.real()[i];
    // NaN: an undecided operand, times 0. The NaN of an undecided operand decides nothing either.
    const bool undecided = !std::isfinite(error) || third.real()[i] + fourth.real()[i] > 0;
    double &least = sums.least.elements<double>()[i], &greatest = sums.greatest.elements<double>()[i];
    least = undecided ? -INFINITY : least - error;
    greatest = undecided ? INFINITY : greatest + error;
  }
  return sums;
}

/// Every order of adding gives the same: all partial sums are multiples of one power of two that fit.
bool exact_in_any_order(int lowest, double magnitude, DType accumulator) {
  const int precision = accumulator == f64 ? 53 : 24;
  if (magnitude == 0) return true;
  return lowest > (accumulator == f64 ? -1000 : -140) && magnitude <= std::ldexp(1.0, precision + lowest);
}

}  // namespace

Enclosure enclose_sum(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  const DType operand = rule.operand(0).centre.dtype(), result = rule.dtype();
  const bool exact_operands = rule.operands_exact();
  if (!is_floating(result)) {
    if (exact_operands) return {std::move(centre), std::nullopt, std::nullopt};
    Ends<std::int64_t> ends(centre);
    for (std::size_t i = 0; i < centre.element_count(); ++i) ends.any(i);
    return std::move(ends).take(std::move(centre));
  }
  const DType accumulator = operand == f64 ? f64 : f32;
  const bool products = rule.operands.size() == 2;
  const Sums sums = products ? two_operands(rule) : one_operand(rule);
  int lowest = std::numeric_limits<int>::max();
  if (exact_operands) {
    const int a = lowest_bit(rule.operand(0).centre);
    const int b = products ? lowest_bit(rule.operand(1).centre) : 0;
    constexpr int none = std::numeric_limits<int>::max();
    lowest = a == none || b == none ? 0 : a + b;
  }
  bool negative_zero = products;
  for (const double value : rule.operand(0).centre.real()) negative_zero |= value == 0 && std::signbit(value);
  const double greatest = greatest_finite(accumulator);
  // In the pass of its maximum, each addition to a sum may scale it: an exponential, of two roundings, and a
  // product.
  const bool scales = rule.node.op == ir::Op::reduce_sum && schedule::maximum_below(rule.graph, rule.node);
  const std::int64_t steps = scales ? 4 : 1;
  Ends<double> ends(centre);
  for (std::size_t i = 0; i < centre.element_count(); ++i) {
    const double least = sums.least.real()[i], most = sums.greatest.real()[i], sum = sums.centre.real()[i];
    const auto terms = static_cast<std::int64_t>(sums.terms.real()[i]);
    const double magnitude = sums.magnitude.real()[i];
    const double growth = runtime::gamma(steps * terms, accumulator) * (accumulator == f64 ? 2 : 1);
    const bool overflows = !(magnitude * (1 + growth) < greatest);
    // In f64 the sum in double may be NaN for its own overflow.
    if (is_nan(sum) && is_nan(least) && is_nan(most) && !(overflows && accumulator == f64)) {
      ends.exact(i);
    } else if (overflows || is_nan(least) || is_nan(most)) {
      ends.any(i);
    } else if (std::isinf(sum)) {
      least == sum&& most == sum ? ends.exact(i) : ends.any(i);
    } else if (exact_operands && exact_in_any_order(lowest, magnitude, accumulator)) {
      const double value = centre.real()[i];
      value == 0 && negative_zero ? ends.put(i, -0.0, 0.0) : ends.exact(i);
    } else if (terms == 1 && !products) {
      const double low = rule.operands_exact() ? centre.real()[i] : floor_to(result, least);
      const double high = rule.operands_exact() ? centre.real()[i] : ceil_to(result, most);
      low == 0 && high == 0 ? ends.put(i, -0.0, 0.0) : ends.put(i, low, high);
    } else {
      double error = growth * magnitude;
      // A product that underflows loses half of the least subnormal.
      if (products) error += static_cast<double>(terms) * runtime::ulp_of(0, accumulator);
      const auto end = [&](double value, auto outward) {
        // The accumulator first, then one rounding to the result.
        double at = outward(accumulator, value);
        runtime::reference::round_to(result, &at, 1);
        return at;
      };
      double low = end(least - error, floor_to), high = end(most + error, ceil_to);
      if (low == 0 && high == 0) {
        low = -0.0;
        high = 0.0;
      }
      ends.put(i, low, high);
    }
  }
  return std::move(ends).take(std::move(centre));
}

}  // namespace fuse::fuzz
