// SPDX-License-Identifier: Apache-2.0
#include "fusec/values/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "eval/bounds/error_bound.hpp"
#include "fusec/values/usual_errors.hpp"
#include "tensors/compare.hpp"

namespace fuse::fusec {
namespace {

using runtime::HostTensor;
using runtime::ReferenceTensor;

constexpr double infinity = std::numeric_limits<double>::infinity();
constexpr std::size_t steady_evaluations = 16, diverse_evaluations = 31;
/// In units in the last place of an element: evaluations that hit the exact values tell nothing about others.
constexpr double least_ulps = 4;

double any_of(std::uint8_t kinds) {
  return (kinds & Answers::nan) != 0        ? NAN
         : (kinds & Answers::positive) != 0 ? infinity
         : (kinds & Answers::negative) != 0 ? -infinity
                                            : 0;
}

/// What there is to say of a result that tells little about the kernels: "NaN", "infinite", or the value that
/// all elements have.
std::string remark(const HostTensor& got) {
  const std::int64_t count = got.element_count();
  if (count == 0) return "";
  if (!is_floating(got.dtype)) {
    for (std::int64_t i = 1; i < count; ++i) {
      if (got.get_int(i) != got.get_int(0)) return "";
    }
    return count == 1 ? "" : fmt::format("{}", got.get_int(0));
  }
  const double first = got.get(0);
  for (std::int64_t i = 1; i < count; ++i) {
    const double value = got.get(i);
    if (Answers::kind_of(value) != Answers::kind_of(first) && !(std::isinf(value) && std::isinf(first)))
      return "";
    if (std::isfinite(first) && value != first) return "";
  }
  if (std::isnan(first)) return "NaN";
  if (std::isinf(first)) return "infinite";
  // Zeros of both signs are equal.
  return count == 1 ? "" : fmt::format("{:.6g}", first == 0 ? 0.0 : first);
}

Verdict verdict_of(const runtime::CompareResult& result, const HostTensor& got, const std::string& right) {
  if (result.ok() && got.element_count() == 0) return {true, "no elements: OK", 0};
  const std::string bare = remark(got);
  const std::string what = got.element_count() == 1 ? "the element is " : "every element is ";
  if (!result.ok()) {
    const std::string more = bare.empty() ? "" : " (" + what + bare + ")";
    return {false, "MISMATCH: " + result.text + more, result.max_bound_ratio, !bare.empty()};
  }
  const std::string more = bare.empty() ? "" : ", but " + what + bare;
  return {true, right + ": OK" + more, result.max_bound_ratio, !bare.empty()};
}

/// "5 of 20 elements hang on decisions that errors leave open", with a semicolon before it.
std::string open_text(std::size_t open, std::size_t count) {
  if (open == 0) return "";
  return fmt::format("; {} of {} elements hang on decisions that errors leave open", open, count);
}

Verdict judge_integers(const HostTensor& got, const ReferenceTensor& exact, const Answers& answers) {
  HostTensor expected = exact.to_host();
  std::size_t open = 0, other = 0;
  if (got.shape == expected.shape && got.dtype == expected.dtype) {
    for (std::int64_t i = 0; i < got.element_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      open += answers.least[at] != answers.greatest[at];
      if (got.get_int(i) == expected.get_int(i) || !answers.may_be(at, got.get_int(i))) continue;
      ++other;
      expected.set_int(i, got.get_int(i));
    }
  }
  const std::string right =
      other == 0 ? "equal to the reference" : fmt::format("{} elements are not the reference's", other);
  return verdict_of(runtime::compare(got, expected, 0, 0), got,
                    right + open_text(open, answers.least.size()));
}

Verdict judge_floats(const HostTensor& got, const ReferenceTensor& exact, const Answers& answers) {
  HostTensor expected = exact.to_host(f64);
  const UsualErrors usual(answers, exact);
  std::size_t open = 0;
  for (std::int64_t i = 0; i < expected.element_count() && got.shape == expected.shape; ++i) {
    const auto at = static_cast<std::size_t>(i);
    std::uint8_t kinds = answers.kinds[at];
    // Of what may be infinite and may be otherwise, nobody knows the sign.
    constexpr std::uint8_t infinities = Answers::positive | Answers::negative;
    const bool varies = !std::has_single_bit(kinds);
    if (answers.diverse && (kinds & infinities) != 0 && varies) kinds |= infinities;
    const bool beyond = usual.is_beyond(at);
    open += varies || beyond;
    const std::uint8_t kind = Answers::kind_of(got.get(i));
    // There is a value that a finite one can be near to, and finite ones do not grow to infinity.
    const bool grows =
        (kinds & infinities) != 0 && beyond && answers.errors[at] > 2 * std::fabs(expected.get(i));
    const bool near = std::isfinite(expected.get(i)) && !grows;
    if ((kinds & kind) != 0 && !(kind == Answers::finite && near)) expected.set(i, got.get(i));
    if ((kinds & kind) == 0 && !((kinds & Answers::finite) != 0 && near)) expected.set(i, any_of(kinds));
  }
  const auto bound = [&](std::size_t i, double wanted) {
    const double own = answers.steady_count > 1 ? answers.own(i) : 0;
    return std::max({usual.bound(i), own, least_ulps * runtime::ulp_of(wanted, got.dtype)});
  };
  const runtime::CompareResult result = runtime::compare(got, expected, bound);
  return verdict_of(
      result, got,
      fmt::format("largest error {:.3g}, at most {:.2g}% of its bound (rounding alone errs by {:.3g}{})",
                  result.max_abs, 100 * result.max_bound_ratio, answers.largest(),
                  open_text(open, answers.kinds.size())));
}

}  // namespace

OutputChecker::OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                             std::function<void(std::string)> now)
    : graph_(graph), inputs_(inputs), dims_(std::move(dims)), now_(std::move(now)) {}

void OutputChecker::tell(std::string what) const {
  if (now_) now_(std::move(what));
}

void OutputChecker::ask(Asked what) {
  const std::size_t steady = what == Asked::one ? 0 : steady_evaluations;
  const std::size_t diverse = what == Asked::all ? diverse_evaluations : 0;
  tell(what == Asked::one
           ? "evaluating exactly, and op by op in the graph's types"
           : fmt::format("evaluating in {} ways that a device may take{}", steady + diverse,
                         what == Asked::all ? ", decisions that errors leave open either way" : ""));
  runtime::TogetherResult result = runtime::evaluate_together(graph_, inputs_, dims_, steady, diverse);
  asked_ = what;
  answers_.clear();
  for (std::size_t k = 0; k < result.evaluations.size(); ++k) {
    // Where something was decided either way, errors are large, and tell nothing about what was not.
    const bool steady_one = what == Asked::one || (k >= 1 && k <= steady);
    for (const auto& [name, tensor] : result.evaluations[k].outputs) {
      Answers& answers = answers_[name];
      answers.diverse = what == Asked::all;
      tensor.is_real() ? answers.take_floats(tensor, result.exact.outputs.at(name), steady_one)
                       : answers.take_integers(tensor);
    }
  }
  exact_ = std::move(result.exact);
  if (result.undecided && what != Asked::all) ask(Asked::all);
}

Verdict OutputChecker::judge(const std::string& output, const HostTensor& got) const {
  const ReferenceTensor& exact = exact_.outputs.at(output);
  return exact.is_real() ? judge_floats(got, exact, answers_.at(output))
                         : judge_integers(got, exact, answers_.at(output));
}

Verdict OutputChecker::check(const std::string& output, const HostTensor& got) {
  if (asked_ == Asked::nothing) ask(Asked::one);
  Verdict verdict = judge(output, got);
  const auto ask_more = [&](Asked what) {
    ask(what);
    verdict = judge(output, got);
  };
  if (!verdict.ok && asked_ == Asked::one) ask_more(Asked::steady);
  // Where sums may overflow, an evaluation draws what becomes of each: 16 may miss one of them.
  if (!verdict.ok && asked_ == Asked::steady && !answers_.at(output).all_finite()) ask_more(Asked::all);
  return verdict;
}

}  // namespace fuse::fusec
