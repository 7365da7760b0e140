// Reductions: sums go to enclose_sum; products, extremes, logical ones and positions have their rules here.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "eval/bounds/error_bound.hpp"
#include "fuzz/judge/error_rules.hpp"

namespace fuse::fuzz {
namespace {

using runtime::with_storage;

/// A sum over the reduced dims of f(element).
ReferenceTensor total(const Rule& rule, auto f) {
  const Enclosure& x = rule.operand(0);
  ReferenceTensor mapped(f64, x.centre.shape());
  const auto out = mapped.elements<double>();
  with_storage(x.centre.dtype(), [&]<class T>() {
    const auto low = x.least().elements<T>(), high = x.greatest().elements<T>();
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = f(low[i], high[i]);
  });
  return rule.apply({&mapped}, f64, ir::Op::reduce_sum);
}

int bits_of(double value) {
  int exponent = 0;
  const auto mantissa = static_cast<std::uint64_t>(std::ldexp(std::frexp(std::fabs(value), &exponent), 53));
  return mantissa == 0 ? 0 : 53 - std::countr_zero(mantissa);
}

Enclosure product(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  const DType dtype = rule.dtype();
  const auto any = [](bool yes) { return yes ? 1.0 : 0.0; };
  const auto smaller = [](double low, double high) { return std::min(std::fabs(low), std::fabs(high)); };
  const auto larger = [](double low, double high) { return std::max(std::fabs(low), std::fabs(high)); };
  const auto crosses = [](double low, double high) { return low <= 0 && high >= 0 && !same(low, high); };
  const ReferenceTensor nans = total(rule, [&](double low, double) { return any(is_nan(low)); });
  const ReferenceTensor odd = total(rule, [&](double low, double high) {
    return any(std::isinf(low) || std::isinf(high) || crosses(low, high));
  });
  const ReferenceTensor zeros =
      total(rule, [&](double low, double high) { return any(low == 0 && high == 0); });
  const ReferenceTensor terms = total(rule, [](double, double) { return 1.0; });
  const ReferenceTensor bits = total(rule, [&](double low, double high) {
    return same(low, high) && std::isfinite(low) ? bits_of(low) : 1000.0;
  });
  const ReferenceTensor up = total(rule, [&](double low, double high) {
    const double at = larger(low, high);
    return std::isfinite(at) && at > 1 ? std::log2(at) : 0.0;
  });
  const ReferenceTensor down = total(rule, [&](double low, double high) {
    const double at = smaller(low, high);
    return at < 1 && at > 0 ? std::log2(at) : 0.0;
  });
  const ReferenceTensor spread = total(rule, [&](double low, double high) {
    return smaller(low, high) > 0 && std::isfinite(larger(low, high))
               ? std::log(larger(low, high) / smaller(low, high))
               : 0.0;
  });
  const double top = dtype == f64 ? 1022 : 126, precision = dtype == f64 ? 53 : 24;
  Ends<double> ends(centre);
  for (std::size_t i = 0; i < centre.element_count(); ++i) {
    const double value = centre.real()[i];
    const double growth =
        runtime::gamma(static_cast<std::int64_t>(terms.real()[i]), dtype) * (dtype == f64 ? 2 : 1);
    if (nans.real()[i] > 0) {
      ends.exact(i);
    } else if (odd.real()[i] > 0 || up.real()[i] >= top) {
      ends.any(i);
    } else if (zeros.real()[i] > 0) {
      ends.put(i, -0.0, 0.0);
    } else if (down.real()[i] <= -top) {
      ends.any(i);
    } else if (bits.real()[i] <= precision) {
      ends.exact(i);
    } else {
      const double relative =
          std::expm1(spread.real()[i] * (1 + 1e-9)) + growth * std::exp(spread.real()[i]) + growth;
      const double error = std::fabs(value) * relative;
      std::isfinite(error) ? ends.put(i, floor_to(dtype, value - error), ceil_to(dtype, value + error))
                           : ends.any(i);
    }
  }
  return std::move(ends).take(std::move(centre));
}

/// max, min, logical: monotone in each element, and no rounding.
template <class T>
Enclosure extreme(const Rule& rule, ReferenceTensor centre) {
  const Enclosure& x = rule.operand(0);
  const ReferenceTensor low = rule.apply({&x.least()}, rule.dtype());
  const ReferenceTensor high = rule.apply({&x.greatest()}, rule.dtype());
  const ReferenceTensor unknown =
      total(rule, [](T least, T greatest) { return undecided(least, greatest) ? 1.0 : 0.0; });
  Ends<T> ends(centre);
  for (std::size_t i = 0; i < centre.element_count(); ++i) {
    const T least = low.elements<T>()[i], greatest = high.elements<T>()[i];
    if (is_nan(least) && is_nan(greatest)) {
      ends.exact(i);
    } else if (unknown.real()[i] > 0 || is_nan(least) || is_nan(greatest)) {
      ends.any(i);
    } else if (least == 0 && greatest == 0 && !x.exact()) {
      // An element that may be 0 may be a zero of either sign.
      ends.put(i, static_cast<T>(-0.0), T{0});
    } else {
      ends.put(i, least, greatest);
    }
  }
  return std::move(ends).take(std::move(centre));
}

/// argmax and argmin: any element that may be the extreme one.
template <class T>
Enclosure position(const Rule& rule, ReferenceTensor centre, bool largest) {
  const Enclosure& x = rule.operand(0);
  const auto axis = static_cast<std::size_t>(ir::attr<ir::DimsAttr>(rule.node).dims.at(0));
  const std::vector<std::int64_t>& shape = x.centre.shape();
  std::size_t inner = 1;
  for (std::size_t d = axis + 1; d < shape.size(); ++d) inner *= static_cast<std::size_t>(shape[d]);
  const auto extent = static_cast<std::size_t>(shape[axis]);
  const auto low = x.least().elements<T>(), high = x.greatest().elements<T>();
  Ends<std::int64_t> ends(centre);
  for (std::size_t i = 0; i < centre.element_count(); ++i) {
    const std::size_t first = i / inner * extent * inner + i % inner;
    bool choice = false, odd = false;
    std::size_t best = first;  // the element whose worse end is best
    for (std::size_t k = 0, at = first; k < extent; ++k, at += inner) {
      choice |= !same(low[at], high[at]);
      odd |= is_nan(low[at]) || undecided(low[at], high[at]);
      if (largest ? low[at] > low[best] : high[at] < high[best]) best = at;
    }
    if (!choice) {
      ends.exact(i);
      continue;
    }
    std::int64_t from = static_cast<std::int64_t>(extent), to = 0;
    for (std::size_t k = 0, at = first; k < extent; ++k, at += inner) {
      if (!odd && (largest ? high[at] < low[best] : low[at] > high[best])) continue;
      from = std::min(from, static_cast<std::int64_t>(k));
      to = std::max(to, static_cast<std::int64_t>(k));
    }
    ends.put(i, from, to);
  }
  return std::move(ends).take(std::move(centre));
}

}  // namespace

Enclosure enclose_reduction(const Rule& rule) {
  const ir::OpInfo& row = info(rule.node.op);
  const DType operand = rule.operand(0).centre.dtype();
  if (row.combine == ir::Op::add) return enclose_sum(rule);
  if (row.combine == ir::Op::mul && is_floating(operand)) return product(rule);
  ReferenceTensor centre = rule.centre();
  return with_storage(operand, [&]<class T>() -> Enclosure {
    if (row.identity == ir::Identity::none) {
      if (rule.operands_exact()) return {std::move(centre), std::nullopt, std::nullopt};
      return position<T>(rule, std::move(centre), row.combine == ir::Op::max);
    }
    if (!is_floating(operand) && rule.operands_exact())
      return {std::move(centre), std::nullopt, std::nullopt};
    if (row.combine == ir::Op::mul) {  // integers wrap
      Ends<T> ends(centre);
      for (std::size_t i = 0; i < centre.element_count(); ++i) ends.any(i);
      return std::move(ends).take(std::move(centre));
    }
    return extreme<T>(rule, std::move(centre));
  });
}

}  // namespace fuse::fuzz
