// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/jumps.hpp"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>

#include "eval/bounds/error_bound.hpp"
#include "eval/bounds/philox.hpp"

namespace fuse::runtime::reference {
namespace {

using ir::Op;

/// Evaluations err as a right device does: by less than this times the largest error of all of them.
constexpr double reach = 4;
/// The first evaluation alone says less.
constexpr double reach_of_one = 16;

/// Where a result jumps.
enum class Jump : std::uint8_t {
  never,
  at_zero,       ///< where the operand is 0
  at_minus_one,  ///< where the operand is -1
  at_halves,     ///< at every multiple of one half of the operand
  at_multiples,  ///< where operand 0 is a multiple of operand 1
  where_equal,   ///< where operands 0 and 1 are equal
  anywhere,      ///< which of the elements is the greatest
};

/// The jump for each floating operand of the op.
Jump jump_of(Op op, std::size_t operand) {
  switch (op) {
    case Op::sign:
    case Op::sqrt:
    case Op::rsqrt:
    case Op::reciprocal:
    case Op::log:
    case Op::log2:
      return Jump::at_zero;
    case Op::div:  // a division by 0; the numerator counts where that is open
      return operand == 1 ? Jump::at_zero : Jump::never;
    case Op::log1p:
      return Jump::at_minus_one;
    case Op::pow:  // a negative base has powers of whole exponents
      return operand == 0 ? Jump::at_zero : Jump::at_halves;
    case Op::atan2:
      return operand == 0 ? Jump::at_zero : Jump::never;
    case Op::floor:
    case Op::ceil:
    case Op::round:
    case Op::convert:
      return Jump::at_halves;
    case Op::rem:
      return operand == 0 ? Jump::at_multiples : Jump::at_zero;
    case Op::eq:
    case Op::ne:
    case Op::lt:
    case Op::le:
    case Op::gt:
    case Op::ge:
      return operand == 0 ? Jump::where_equal : Jump::never;
    case Op::argmax:
    case Op::argmin:
      return Jump::anywhere;
    default:
      return Jump::never;
  }
}

Jump jump_of(const ir::Graph& graph, const ir::Node& node, std::size_t operand) {
  if (!is_floating(graph[node.operands[operand]].type.dtype)) return Jump::never;
  if (node.op == Op::convert && is_floating(node.type.dtype)) return Jump::never;
  return jump_of(node.op, operand);
}

/// The largest error of the evaluations at each element of the operand, or of the difference of operands 0
/// and 1; infinite where they are not of one kind. An element at which no evaluation is off is taken to have
/// the same value on any device: evaluations move what a device may have otherwise, but for whole results of
/// functions.
std::vector<double> errors_of(const std::vector<const ReferenceTensor*>& exact,
                              const std::vector<Operands>& evaluations, std::size_t operand,
                              bool difference) {
  const ReferenceTensor& wanted = *exact[operand];
  std::vector<double> errors(wanted.element_count());
  for (const Operands& each : evaluations) {
    const ReferenceTensor& values = *each.values[operand];
    for (std::size_t i = 0; i < errors.size(); ++i) {
      Wide value = values.get_wide(i), right = wanted.get_wide(i);
      if (difference) value -= each.values[1]->get_wide(i), right -= exact[1]->get_wide(i);
      if (value == right || (std::isnan(value) && std::isnan(right))) continue;
      const auto error = static_cast<double>(std::fabs(value - right));
      errors[i] = std::max(errors[i], std::isfinite(error) ? error : std::numeric_limits<double>::infinity());
    }
  }
  return errors;
}

/// At the jump, or on a side of it at a distance up to the error.
struct Way {
  int side = 0;
  double part = 1;  ///< the part of the error
};

/// The first of the diverse evaluations take all decisions alike, as a device does that errs nowhere, or as
/// far as it may, or hardly. A dividend, whose divisor is open too, is once beside 0 while the divisor is 0.
constexpr double hardly = 0x1p-24;
constexpr Way alike[] = {{0, 0}, {0, 0}, {-1, 1}, {1, 1}, {-1, hardly}, {1, hardly}};
constexpr Way dividends_alike[] = {{0, 0}, {1, 1}, {-1, 1}, {1, 1}, {-1, hardly}, {1, hardly}};

/// In the others each decision is taken for itself, and small distances are as likely as large ones.
/// `draw(n)` is in [0, 1), the n-th number of the decision.
template <class Draw>
Way way_of(std::size_t number, bool dividend, const Draw& draw) {
  if (number < std::size(alike)) return (dividend ? dividends_alike : alike)[number];
  const double chance = draw(2 * number);
  return {chance < 0.4 ? -1 : chance < 0.8 ? 1 : 0, std::exp2(-24 * draw(2 * number + 1))};
}

double beside(double jump, double error, const Way& way) {
  if (way.side == 0) return jump;
  const double next = std::nextafter(jump, way.side * std::numeric_limits<double>::infinity());
  return way.side < 0 ? std::min(next, jump - way.part * error) : std::max(next, jump + way.part * error);
}

class Settler {
 public:
  Settler(const ir::Node& node, const std::vector<const ReferenceTensor*>& exact,
          std::vector<Operands>& evaluations, std::size_t steady, std::int64_t draw)
      : node_(node),
        exact_(exact),
        evaluations_(evaluations),
        steady_(steady),
        draw_(draw),
        factor_(evaluations.size() > 1 ? reach : reach_of_one) {}

  /// `positive`: only an element that may underflow can come to the jump.
  bool settle(std::size_t operand, Jump jump, bool positive) {
    const ReferenceTensor& exact = *exact_[operand];
    const std::vector<double> errors = errors_of(exact_, evaluations_, operand, jump == Jump::where_equal);
    const bool divides = node_.op == Op::div && exact_[0] != exact_[1];
    std::vector<double> numerators;  // their errors
    bool any = false;
    for (std::size_t i = 0; i < errors.size(); ++i) {
      if (node_.op == Op::pow && operand == 0 && is_smooth(exact_[1]->get(i))) continue;
      const double value = exact.get(i);
      if (errors[i] == 0 || !std::isfinite(errors[i]) || !std::isfinite(value)) continue;
      if (positive && value > 1 / ulp_of(1, exact.dtype()) * ulp_of(0, exact.dtype()) * 0x1p10) continue;
      const double at = jump == Jump::anywhere ? value : jump_near(jump, i, value);
      const double error = factor_ * errors[i];
      if (!(std::fabs(static_cast<double>(exact.get_wide(i) - static_cast<Wide>(at))) <= error)) continue;
      any = true;
      replace(operand, jump, i, at, error);
      if (!divides) continue;
      if (numerators.empty()) numerators = errors_of(exact_, evaluations_, 0, false);
      const double reached = factor_ * numerators[i];
      if (std::isfinite(reached) && std::fabs(exact_[0]->get(i)) <= reached) replace(0, jump, i, 0, reached);
    }
    return any;
  }

 private:
  /// Whether a power passes 0 without a jump.
  static bool is_smooth(double exponent) { return exponent > 0 && exponent == std::nearbyint(exponent); }

  double jump_near(Jump jump, std::size_t i, double value) const {
    switch (jump) {
      case Jump::at_minus_one:
        return -1;
      case Jump::at_halves:
        return std::nearbyint(2 * value) / 2;
      case Jump::at_multiples: {
        const double step = exact_[1]->get(i);
        return step == 0 ? 0 : step * std::nearbyint(value / step);
      }
      case Jump::where_equal:
        return exact_[1]->get(i);
      default:
        return 0;
    }
  }

  void replace(std::size_t operand, Jump jump, std::size_t i, double at, double error) {
    for (std::size_t k = 1; k < evaluations_.size(); ++k) {
      if (k <= steady_) {
        set(k, operand, i, exact_[operand]->get(i));
        if (jump == Jump::where_equal) set(k, 1, i, exact_[1]->get(i));
      } else if (jump == Jump::where_equal) {
        set(k, operand, i, beside(value_of(k, 1, i), error, way(k, operand, i)));
      } else if (jump != Jump::anywhere) {
        set(k, operand, i, beside(at, error, way(k, operand, i)));
      } else if (k % 2 == 0) {
        set(k, operand, i, at + (2 * drawn(k, operand, i) - 1) * error);
      }
    }
  }

  /// A number in [0, 1), the same for the same evaluation, op, operand and element.
  double drawn(std::size_t evaluation, std::size_t operand, std::size_t i) const {
    return uniform_f64(static_cast<std::int64_t>(evaluation), stream(operand), 1,
                       static_cast<std::int64_t>(i));
  }

  std::int64_t stream(std::size_t operand) const { return 4 * draw_ + static_cast<std::int64_t>(operand); }

  Way way(std::size_t evaluation, std::size_t operand, std::size_t i) const {
    // Numbers of evaluations are taken: those of the decision itself are negative.
    const bool dividend = node_.op == Op::div && operand == 0;
    return way_of(evaluation - steady_ - 1, dividend, [&](std::size_t n) {
      return uniform_f64(-1 - static_cast<std::int64_t>(n), stream(operand), 1, static_cast<std::int64_t>(i));
    });
  }

  double value_of(std::size_t evaluation, std::size_t operand, std::size_t i) const {
    return evaluations_[evaluation].values[operand]->elements<double>()[i];
  }

  void set(std::size_t evaluation, std::size_t operand, std::size_t i, double value) {
    Operands& operands = evaluations_[evaluation];
    const ReferenceTensor* own = operands.values[operand];
    const auto [found, added] = operands.replaced.try_emplace(operand);
    if (added) found->second = *own;
    found->second.elements<double>()[i] = value;
    for (const ReferenceTensor*& each : operands.values) {  // both for x / x
      if (each == own) each = &found->second;
    }
  }

  const ir::Node& node_;
  const std::vector<const ReferenceTensor*>& exact_;
  std::vector<Operands>& evaluations_;
  const std::size_t steady_;
  const std::int64_t draw_;
  const double factor_;
};

}  // namespace

bool decides(const ir::Graph& graph, const ir::Node& node) {
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    if (jump_of(graph, node, i) != Jump::never) return true;
  }
  return false;
}

bool settle(const ir::Graph& graph, const ir::Node& node, const std::vector<bool>& positive,
            const std::vector<const ReferenceTensor*>& exact, std::vector<Operands>& evaluations,
            std::size_t steady, std::int64_t draw) {
  Settler settler(node, exact, evaluations, steady, draw);
  bool any = false;
  for (std::size_t i = 0; i < node.operands.size(); ++i) {
    const Jump jump = jump_of(graph, node, i);
    if (jump == Jump::never) continue;
    any |= settler.settle(i, jump, jump == Jump::at_zero && positive[node.operands[i]]);
  }
  return any;
}

}  // namespace fuse::runtime::reference
