// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "runtime/compare.hpp"
#include "runtime/reference/error_bound.hpp"
#include "runtime/reference/philox.hpp"

namespace fuse::fusec {
namespace {

constexpr double factor = 4;  // a fused kernel sums in another order, and its functions are other ones
/// An error that is so many times over its bound is no matter of chance.
constexpr double hopeless = 1000;

Verdict check_exactly(const runtime::HostTensor& got, const runtime::HostTensor& expected) {
  const runtime::CompareResult result = runtime::compare(got, expected, 0, 0);
  if (result.ok()) return {true, "equal to the reference: OK", 0};
  return {false, "MISMATCH: " + result.text, result.max_bound_ratio};
}

}  // namespace

OutputChecker::OutputChecker(const ir::Graph& graph, const runtime::Values& inputs, Dims dims,
                             std::function<void(std::string)> now)
    : graph_(graph), inputs_(inputs), dims_(std::move(dims)), now_(std::move(now)) {}

void OutputChecker::tell(std::string what) const {
  if (now_) now_(std::move(what));
}

void OutputChecker::evaluate() {
  tell("evaluating the exact reference");
  exact_ = runtime::evaluate(graph_, inputs_, dims_, runtime::Precision::exact);
  tell("evaluating op by op in the graph's types");
  same_type_ = runtime::evaluate(graph_, inputs_, dims_, runtime::Precision::same_type);
  take_errors(exact_, same_type_);
}

void OutputChecker::take_errors(const runtime::ReferenceResult& exact,
                                const runtime::ReferenceResult& same_type) {
  for (const auto& [name, values] : same_type.outputs) {
    if (!is_floating(values.dtype())) continue;
    const runtime::ReferenceTensor& wanted = exact.outputs.at(name);
    double& usual = usual_[name];
    for (std::size_t i = 0; i < wanted.element_count(); ++i) {
      const double error = std::fabs(values.get(i) - wanted.get(i));
      if (std::isfinite(error)) usual = std::max(usual, error);
    }
  }
}

// Whole numbers stay: they are often meant to be just that, and a nudge across one changes what floors and
// comparisons make of it.
runtime::Values OutputChecker::nudged(int sample) const {
  runtime::Values values = inputs_;
  std::int64_t stream = 0;
  for (auto& [name, tensor] : values) {
    ++stream;
    if (!is_floating(tensor.dtype)) continue;
    for (std::int64_t i = 0; i < tensor.element_count(); ++i) {
      const double value = tensor.get(i);
      if (!std::isfinite(value) || value == std::nearbyint(value)) continue;
      const double up = runtime::reference::uniform_f32(sample, 0, stream, i) < 0.5 ? -1 : 1;
      tensor.set(i, value + up * runtime::ulp_of(value, tensor.dtype));
    }
  }
  return values;
}

void OutputChecker::take_sample() {
  ++samples_;
  tell(fmt::format("beyond the bound: evaluating from inputs that are one ulp off ({} of {})", samples_,
                   most_samples));
  const runtime::Values inputs = nudged(samples_);
  take_errors(runtime::evaluate(graph_, inputs, dims_, runtime::Precision::exact),
              runtime::evaluate(graph_, inputs, dims_, runtime::Precision::same_type));
}

Verdict OutputChecker::judge(const std::string& output, const runtime::HostTensor& got) const {
  const runtime::ReferenceTensor& exact = exact_.outputs.at(output);
  const runtime::ReferenceTensor& same_type = same_type_.outputs.at(output);
  if (!is_floating(got.dtype)) return check_exactly(got, same_type.to_host());

  runtime::HostTensor expected = exact.to_host(f64);
  for (std::size_t i = 0; i < exact.element_count(); ++i) {
    const double same = same_type.get(i);
    if (!std::isfinite(exact.get(i)) || !std::isfinite(same)) {
      expected.set(static_cast<std::int64_t>(i), same);
    }
  }
  const double usual = usual_.at(output);
  const auto bound = [&](std::size_t, double wanted) {
    return std::max(factor * usual, factor * runtime::ulp_of(wanted, got.dtype));
  };
  const runtime::CompareResult result = runtime::compare(got, expected, bound);
  if (!result.ok()) return {false, "MISMATCH: " + result.text, result.max_bound_ratio};
  if (exact.element_count() == 0) return {true, "no elements: OK", 0};
  const double there = expected.get(static_cast<std::int64_t>(result.worst_index));
  return {true,
          fmt::format("largest error {:.3g}, bound {:.3g} (op by op errs by {:.3g}): OK", result.max_abs,
                      bound(result.worst_index, there), usual),
          result.max_bound_ratio};
}

Verdict OutputChecker::check(const std::string& output, const runtime::HostTensor& got) {
  if (exact_.outputs.empty()) evaluate();
  Verdict verdict = judge(output, got);
  while (!verdict.ok && is_floating(got.dtype) && verdict.over_bound < hopeless && samples_ < most_samples) {
    take_sample();
    verdict = judge(output, got);
  }
  return verdict;
}

}  // namespace fuse::fusec
