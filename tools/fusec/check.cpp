// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "runtime/compare.hpp"
#include "runtime/reference/error_bound.hpp"

namespace fuse::fusec {
namespace {

using runtime::HostTensor;
using runtime::ReferenceTensor;

constexpr double infinity = std::numeric_limits<double>::infinity();
/// Of 18 draws from one normal distribution about 0, the last is beyond 4 times the largest of the others
/// less than once in a million.
constexpr double factor = 4;
/// The relative error often hangs on one element, the one nearest to 0, where all draws may be small.
constexpr double relative_factor = 16;
/// In units in the last place of an element: evaluations that hit the exact values tell nothing about others.
constexpr double least_ulps = 4;

enum Kind : std::uint8_t { finite = 1, nan = 2, positive = 4, negative = 8 };

std::uint8_t kind_of(double value) {
  if (std::isnan(value)) return nan;
  if (std::isinf(value)) return value > 0 ? positive : negative;
  return finite;
}

double any_of(std::uint8_t kinds) {
  return (kinds & nan) != 0        ? NAN
         : (kinds & positive) != 0 ? infinity
         : (kinds & negative) != 0 ? -infinity
                                   : 0;
}

void take_floats(const ReferenceTensor& values, const ReferenceTensor& exact, Answers& answers) {
  answers.kinds.resize(values.element_count());
  for (std::size_t i = 0; i < values.element_count(); ++i) {
    answers.kinds[i] |= kind_of(values.get(i));
    const runtime::Wide wanted = exact.get_wide(i);
    const auto error = static_cast<double>(std::fabs(values.get_wide(i) - wanted));
    if (!std::isfinite(error) || error == 0) continue;
    answers.abs = std::max(answers.abs, error);
    answers.rel =
        std::max(answers.rel, wanted == 0 ? infinity : static_cast<double>(error / std::fabs(wanted)));
  }
}

void take_integers(const ReferenceTensor& values, Answers& answers) {
  const auto elements = values.integer();
  if (answers.least.empty()) {
    answers.least.assign(elements.begin(), elements.end());
    answers.greatest = answers.least;
  }
  for (std::size_t i = 0; i < elements.size(); ++i) {
    answers.least[i] = std::min(answers.least[i], elements[i]);
    answers.greatest[i] = std::max(answers.greatest[i], elements[i]);
  }
}

/// What there is to say of a result that tells little about the kernels, with a comma before it.
std::string remark(const HostTensor& got) {
  const std::int64_t count = got.element_count();
  if (count < 2) return count == 1 && std::isnan(got.get(0)) ? ", but the element is NaN" : "";
  const double first = got.get(0);
  for (std::int64_t i = 1; i < count; ++i) {
    const double value = got.get(i);
    if (kind_of(value) != kind_of(first) && !(std::isinf(value) && std::isinf(first))) return "";
    if (std::isfinite(first) && value != first) return "";
  }
  if (std::isnan(first)) return ", but every element is NaN";
  if (std::isinf(first)) return ", but every element is infinite";
  return fmt::format(", but every element is {:.6g}", first);
}

Verdict verdict_of(const runtime::CompareResult& result, const HostTensor& got, const std::string& right) {
  if (!result.ok()) return {false, "MISMATCH: " + result.text, result.max_bound_ratio};
  if (got.element_count() == 0) return {true, "no elements: OK", 0};
  const std::string bare = remark(got);
  return {true, right + ": OK" + bare, result.max_bound_ratio, !bare.empty()};
}

Verdict judge_integers(const HostTensor& got, const ReferenceTensor& exact, const Answers& answers) {
  HostTensor expected = exact.to_host();
  if (got.shape == expected.shape && got.dtype == expected.dtype) {
    for (std::int64_t i = 0; i < got.element_count(); ++i) {
      const auto at = static_cast<std::size_t>(i);
      expected.set_int(i, std::clamp(got.get_int(i), answers.least[at], answers.greatest[at]));
    }
  }
  return verdict_of(runtime::compare(got, expected, 0, 0), got, "equal to the reference");
}

Verdict judge_floats(const HostTensor& got, const ReferenceTensor& exact, const Answers& answers) {
  HostTensor expected = exact.to_host(f64);
  for (std::int64_t i = 0; i < expected.element_count() && got.shape == expected.shape; ++i) {
    const std::uint8_t kinds = answers.kinds[static_cast<std::size_t>(i)];
    const std::uint8_t kind = kind_of(got.get(i));
    const bool near = std::isfinite(expected.get(i));  // there is a value that a finite one can be near to
    if ((kinds & kind) != 0 && !(kind == finite && near)) expected.set(i, got.get(i));
    if ((kinds & kind) == 0 && !((kinds & finite) != 0 && near)) expected.set(i, any_of(kinds));
  }
  const auto bound = [&](std::size_t, double wanted) {
    const double usual = std::min(factor * answers.abs, relative_factor * answers.rel * std::fabs(wanted));
    return std::max(usual, least_ulps * runtime::ulp_of(wanted, got.dtype));
  };
  const runtime::CompareResult result = runtime::compare(got, expected, bound);
  return verdict_of(
      result, got,
      fmt::format("largest error {:.3g}, at most {:.2g}% of its bound (op by op errs by {:.3g})",
                  result.max_abs, 100 * result.max_bound_ratio, answers.abs));
}

}  // namespace

OutputChecker::OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                             std::function<void(std::string)> now)
    : graph_(graph), inputs_(inputs), dims_(std::move(dims)), now_(std::move(now)) {}

void OutputChecker::tell(std::string what) const {
  if (now_) now_(std::move(what));
}

void OutputChecker::ask_variant() {
  if (variants_ == 0) {
    tell("evaluating the exact reference");
    exact_ = runtime::evaluate(graph_, inputs_, dims_, runtime::Precision::wide);
    tell("evaluating op by op in the graph's types");
  } else {
    tell(fmt::format("beyond the bound: evaluating with sums in another order ({} of {})", variants_,
                     most_variants - 1));
  }
  const runtime::ReferenceResult values = runtime::evaluate(
      graph_, inputs_, dims_, runtime::Precision::same_type, {}, static_cast<std::uint64_t>(variants_++));
  for (const auto& [name, tensor] : values.outputs) {
    if (tensor.is_real()) {
      take_floats(tensor, exact_.outputs.at(name), answers_[name]);
    } else {
      take_integers(tensor, answers_[name]);
    }
  }
}

Verdict OutputChecker::judge(const std::string& output, const HostTensor& got) const {
  const ReferenceTensor& exact = exact_.outputs.at(output);
  return exact.is_real() ? judge_floats(got, exact, answers_.at(output))
                         : judge_integers(got, exact, answers_.at(output));
}

Verdict OutputChecker::check(const std::string& output, const HostTensor& got) {
  if (variants_ == 0) ask_variant();
  Verdict verdict = judge(output, got);
  while (!verdict.ok && variants_ < most_variants) {
    ask_variant();
    verdict = judge(output, got);
  }
  return verdict;
}

}  // namespace fuse::fusec
