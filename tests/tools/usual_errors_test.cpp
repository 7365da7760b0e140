// Which elements of an output are judged by the errors of which. SPDX-License-Identifier: Apache-2.0
#include "fusec/values/usual_errors.hpp"

#include <algorithm>

#include "support/catch.hpp"

namespace fuse::fusec {
namespace {

constexpr std::size_t count = 100, evaluations = 16;

/// Elements of 1, of which each evaluation errs by 1e-7, but for the last one.
struct Output {
  Output(double largest, double in_evaluations) {
    answers.kinds.assign(count, Answers::finite);
    answers.steady.assign(count, 1e-7);
    answers.sums.assign(count, evaluations * 1e-7);
    answers.steady.back() = largest;
    answers.sums.back() = in_evaluations * largest;
    answers.errors = answers.steady;
    answers.steady_count = evaluations;
    std::ranges::fill(exact.elements<double>(), 1.0);
  }
  double bound(std::size_t element) const { return UsualErrors(answers, exact).bound(element); }

  Answers answers{};
  runtime::ReferenceTensor exact{f64, {count}, runtime::Hold::real};
};

}  // namespace

TEST_CASE("usual errors: an element that errs far more in all evaluations counts for itself alone",
          "[fusec]") {
  const Output output(1e-4, evaluations);
  CHECK(output.bound(0) == Approx(4e-7));
  CHECK(output.bound(count - 1) == Approx(16e-7));  // by the relative error of the others
}

TEST_CASE("usual errors: what errs in one evaluation may happen to any element", "[fusec]") {
  CHECK(Output(1e-4, 1).bound(0) == Approx(4e-4));
}

TEST_CASE("usual errors: a few times the median is usual", "[fusec]") {
  CHECK(Output(5e-7, evaluations).bound(0) == Approx(20e-7));
}

}  // namespace fuse::fusec
