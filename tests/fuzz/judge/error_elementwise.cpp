// Element by element: the op at the corners of the operands' ranges, where that is enough.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <string_view>

#include "eval/bounds/error_bound.hpp"
#include "fuzz/judge/error_rules.hpp"

namespace fuse::fuzz {
namespace {

using runtime::with_storage;

/// How the range of a result follows from the ranges of operands.
enum class Follow : std::uint8_t {
  no,         ///< undecided unless no operand has a choice
  corners,    ///< monotone in each operand
  wrapping,   ///< the same, but integers wrap: floats only
  pole,       ///< the same where the last operand keeps away from 0; floats only
  positive,   ///< the same where operand 0 is above 0; floats only
  magnitude,  ///< abs
  wave,       ///< derivative at most 1: sin, cos
  equality,   ///< known where the ranges are apart
};

struct Row {
  std::string_view op;
  Follow follow;
};
// An op that is not here is still compared wherever its operands leave no choice.
constexpr Row rows[] = {
    {"sign", Follow::corners},
    {"floor", Follow::corners},
    {"ceil", Follow::corners},
    {"round", Follow::corners},
    {"sqrt", Follow::corners},
    {"exp", Follow::corners},
    {"exp2", Follow::corners},
    {"expm1", Follow::corners},
    {"log", Follow::corners},
    {"log2", Follow::corners},
    {"log1p", Follow::corners},
    {"tanh", Follow::corners},
    {"erf", Follow::corners},
    {"max", Follow::corners},
    {"min", Follow::corners},
    {"clamp", Follow::corners},
    {"is_nan", Follow::corners},
    {"is_inf", Follow::corners},
    {"logical_not", Follow::corners},
    {"logical_and", Follow::corners},
    {"logical_or", Follow::corners},
    {"lt", Follow::corners},
    {"le", Follow::corners},
    {"gt", Follow::corners},
    {"ge", Follow::corners},
    {"neg", Follow::wrapping},
    {"add", Follow::wrapping},
    {"sub", Follow::wrapping},
    {"mul", Follow::wrapping},
    {"div", Follow::pole},
    {"reciprocal", Follow::pole},
    {"rsqrt", Follow::positive},
    {"pow", Follow::positive},
    {"abs", Follow::magnitude},
    {"sin", Follow::wave},
    {"cos", Follow::wave},
    {"eq", Follow::equality},
    {"ne", Follow::equality},
};

Follow follow_of(std::string_view op) {
  for (const Row& row : rows) {
    if (row.op == op) return row.follow;
  }
  return Follow::no;
}

/// The table's error about a value that the reference rounded; it may reach 0 and does not pass it.
template <class T>
void widen(ir::Op op, DType dtype, T& low, T& high) {
  if constexpr (std::is_same_v<T, double>) {
    const int ulp = ir::info(op).ulp;
    if (ulp == 0 || is_nan(low) || is_nan(high)) return;
    const double steps = ulp + 0.5 + (dtype == f64 ? 1 : 0);
    const auto error = [&](double value) {
      const double at = std::fabs(value);
      if (std::isinf(at)) return steps * runtime::ulp_of(greatest_finite(dtype), dtype);
      return steps * runtime::ulp_of(at + steps * runtime::ulp_of(at, dtype), dtype);
    };
    const auto finite = [&](double value) {
      return std::isinf(value) ? std::copysign(greatest_finite(dtype), value) : value;
    };
    const bool negative = std::signbit(low), positive = !std::signbit(high);
    // An infinity may be what the reference made of a value just beyond the greatest.
    double least = low == -INFINITY ? low : floor_to(dtype, finite(low) - error(low));
    double greatest = high == INFINITY ? high : ceil_to(dtype, finite(high) + error(high));
    if (!negative) least = std::max(least, 0.0);
    if (!positive) greatest = std::min(greatest, -0.0);
    low = least;
    high = greatest;
  }
}

template <class R, class T>
class Elementwise {
 public:
  explicit Elementwise(const Rule& rule)
      : rule_(rule), follow_(follow_of(ir::info(rule.node.op).name)), count_(rule.operands.size()) {
    for (std::size_t k = 0; k < count_; ++k) {
      least_.push_back(rule.operand(k).least().template elements<T>());
      greatest_.push_back(rule.operand(k).greatest().template elements<T>());
    }
  }

  Enclosure run() {
    ReferenceTensor centre = rule_.centre();
    Ends<R> ends(centre);
    const auto at_centre = centre.template elements<R>();
    if (!rule_.operands_exact()) make_corners();
    for (std::size_t i = 0; i < at_centre.size(); ++i) {
      if (has_choice(i)) {
        follow(i, at_centre[i], ends);
      } else if (surely_infinite(centre, i)) {
        ends.exact(i);
      } else {
        R low = at_centre[i], high = at_centre[i];
        widen(rule_.node.op, rule_.dtype(), low, high);
        ends.put(i, low, high);
      }
    }
    return std::move(ends).take(std::move(centre));
  }

 private:
  /// An infinity that is not the rounding of a value just beyond the greatest one.
  bool surely_infinite(const ReferenceTensor& centre, std::size_t i) {
    if constexpr (std::is_same_v<R, double> && std::is_same_v<T, double>) {
      if (!std::isinf(centre.real()[i])) return false;
      for (std::size_t k = 0; k < count_; ++k) {
        if (std::isinf(least_[k][i])) return true;
      }
      if (rule_.dtype() == f64) return false;
      if (!wide_) wide_ = in_double();
      return std::fabs(wide_->real()[i]) > 1.001 * greatest_finite(rule_.dtype());
    }
    return false;
  }

  ReferenceTensor in_double() const {
    std::vector<ReferenceTensor> wide;
    for (const Enclosure* operand : rule_.operands) wide.push_back(as_dtype(operand->centre, f64));
    std::vector<const ReferenceTensor*> values;
    for (const ReferenceTensor& value : wide) values.push_back(&value);
    return rule_.apply(values, f64);
  }

  bool has_choice(std::size_t i) const {
    for (std::size_t k = 0; k < count_; ++k) {
      if (!same(least_[k][i], greatest_[k][i])) return true;
    }
    return false;
  }

  void make_corners() {
    for (std::size_t mask = 0; mask < (std::size_t{1} << count_); ++mask) {
      std::vector<const ReferenceTensor*> values;
      bool repeated = false;
      for (std::size_t k = 0; k < count_; ++k) {
        const bool up = (mask >> k & 1) != 0;
        repeated |= up && rule_.operand(k).exact();
        values.push_back(up ? &rule_.operand(k).greatest() : &rule_.operand(k).least());
      }
      if (!repeated) corners_.push_back(rule_.apply(values, rule_.dtype()));
    }
  }

  bool can_follow(std::size_t i) const {
    const std::size_t last = count_ - 1;
    constexpr bool real = std::is_same_v<T, double>;
    switch (follow_) {
      case Follow::no:
        return false;
      case Follow::corners:
      case Follow::equality:
        return true;
      case Follow::wrapping:
      case Follow::magnitude:
      case Follow::wave:
        return real;
      case Follow::pole:
        return real && (least_[last][i] > 0 || greatest_[last][i] < 0);
      case Follow::positive:
        return real && least_[0][i] > 0;
    }
    return false;
  }

  void follow(std::size_t i, R centre, Ends<R>& ends) const {
    for (std::size_t k = 0; k < count_; ++k) {
      if (undecided(least_[k][i], greatest_[k][i])) return ends.any(i);
    }
    if (!can_follow(i)) return ends.any(i);
    if (follow_ == Follow::equality) {
      const bool apart = greatest_[0][i] < least_[1][i] || greatest_[1][i] < least_[0][i];
      const bool nan = is_nan(least_[0][i]) || is_nan(least_[1][i]);
      return apart || nan ? ends.exact(i) : ends.any(i);
    }
    R low{}, high{};
    std::size_t nans = 0;
    bool first = true;
    for (const ReferenceTensor& corner : corners_) {
      const R value = corner.template elements<R>()[i];
      nans += is_nan(value);
      if (is_nan(value)) continue;
      if (first || before(value, low)) low = value;
      if (first || before(high, value)) high = value;
      first = false;
    }
    if (nans == corners_.size() && nan_operand(i)) return ends.exact(i);
    if (nans > 0) return ends.any(i);
    if constexpr (std::is_same_v<R, double> && std::is_same_v<T, double>) {
      if (follow_ == Follow::magnitude && least_[0][i] < 0 && greatest_[0][i] > 0) low = 0;
      if (follow_ == Follow::wave) {
        const double reach = greatest_[0][i] - least_[0][i] + runtime::ulp_of(1.0, rule_.dtype());
        low = std::max(-1.0, floor_to(rule_.dtype(), centre - reach));
        high = std::min(1.0, ceil_to(rule_.dtype(), centre + reach));
      }
      if (low == 0 && high == 0) {  // between the corners lie zeros of the other sign
        low = -0.0;
        high = 0.0;
      }
    }
    widen(rule_.node.op, rule_.dtype(), low, high);
    ends.put(i, low, high);
  }

  bool nan_operand(std::size_t i) const {
    for (std::size_t k = 0; k < count_; ++k) {
      if (is_nan(least_[k][i]) && is_nan(greatest_[k][i])) return true;
    }
    return false;
  }

  const Rule& rule_;
  const Follow follow_;
  const std::size_t count_;
  std::vector<std::span<const T>> least_, greatest_;
  std::vector<ReferenceTensor> corners_;
  std::optional<ReferenceTensor> wide_;  ///< the op in double
};

}  // namespace

Enclosure enclose_elementwise(const Rule& rule) {
  return with_storage(rule.operand(0).centre.dtype(), [&]<class T>() {
    return with_storage(rule.dtype(), [&]<class R>() { return Elementwise<R, T>(rule).run(); });
  });
}

Enclosure enclose_select(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  if (rule.operands_exact()) return {std::move(centre), std::nullopt, std::nullopt};
  return with_storage(rule.dtype(), [&]<class T>() {
    Ends<T> ends(centre);
    const auto never = rule.operand(0).least().integer(), ever = rule.operand(0).greatest().integer();
    const auto a_low = rule.operand(1).least().elements<T>(),
               a_high = rule.operand(1).greatest().elements<T>();
    const auto b_low = rule.operand(2).least().elements<T>(),
               b_high = rule.operand(2).greatest().elements<T>();
    for (std::size_t i = 0; i < never.size(); ++i) {
      if (never[i] == ever[i]) {
        never[i] != 0 ? ends.put(i, a_low[i], a_high[i]) : ends.put(i, b_low[i], b_high[i]);
      } else if (same(a_low[i], b_low[i]) && same(a_high[i], b_high[i])) {
        ends.put(i, a_low[i], a_high[i]);
      } else if (is_nan(a_low[i]) || is_nan(b_low[i]) || undecided(a_low[i], a_high[i]) ||
                 undecided(b_low[i], b_high[i])) {
        ends.any(i);
      } else {
        ends.put(i, before(a_low[i], b_low[i]) ? a_low[i] : b_low[i],
                 before(a_high[i], b_high[i]) ? b_high[i] : a_high[i]);
      }
    }
    return std::move(ends).take(std::move(centre));
  });
}

Enclosure enclose_convert(const Rule& rule) {
  ReferenceTensor centre = rule.centre();
  if (rule.operands_exact()) return {std::move(centre), std::nullopt, std::nullopt};
  const ReferenceTensor at_low = rule.apply({&rule.operand(0).least()}, rule.dtype());
  const ReferenceTensor at_high = rule.apply({&rule.operand(0).greatest()}, rule.dtype());
  const bool to_boolean = kind_of(rule.dtype()) == DTypeKind::boolean;
  return with_storage(rule.operand(0).centre.dtype(), [&]<class T>() {
    return with_storage(rule.dtype(), [&]<class R>() {
      Ends<R> ends(centre);
      const auto from = rule.operand(0).least().template elements<T>();
      const auto to = rule.operand(0).greatest().template elements<T>();
      const auto low = at_low.template elements<R>(), high = at_high.template elements<R>();
      // Between integer types a conversion wraps.
      constexpr bool wraps = !std::is_same_v<T, double> && !std::is_same_v<R, double>;
      for (std::size_t i = 0; i < from.size(); ++i) {
        const bool crosses = to_boolean && from[i] <= 0 && to[i] >= 0;
        if (same(from[i], to[i])) {
          ends.exact(i);
        } else if (undecided(from[i], to[i]) || crosses || (wraps && !to_boolean)) {
          ends.any(i);
        } else {
          ends.put(i, low[i], high[i]);
        }
      }
      return std::move(ends).take(std::move(centre));
    });
  });
}

}  // namespace fuse::fuzz
