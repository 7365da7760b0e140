// SPDX-License-Identifier: Apache-2.0
#include "check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "runtime/compare.hpp"
#include "runtime/reference/error_bound.hpp"

namespace fuse::fusec {
namespace {

constexpr double factor = 4;  // a fused kernel sums in another order, and its functions are other ones

Verdict check_exactly(const runtime::HostTensor& got, const runtime::HostTensor& expected) {
  const runtime::CompareResult result = runtime::compare(got, expected, 0, 0);
  if (result.ok()) return {true, "equal to the reference: OK", 0};
  return {false, "MISMATCH: " + result.text, result.max_bound_ratio};
}

}  // namespace

Verdict check_output(const runtime::HostTensor& got, const runtime::ReferenceTensor& exact,
                     const runtime::ReferenceTensor& same_type) {
  if (!is_floating(got.dtype)) return check_exactly(got, same_type.to_host());

  runtime::HostTensor expected = exact.to_host(f64);
  double usual = 0;
  for (std::size_t i = 0; i < exact.element_count(); ++i) {
    const double wanted = exact.get(i), same = same_type.get(i);
    if (std::isfinite(wanted) && std::isfinite(same)) {
      usual = std::max(usual, std::fabs(same - wanted));
    } else {
      expected.set(static_cast<std::int64_t>(i), same);
    }
  }
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

}  // namespace fuse::fusec
