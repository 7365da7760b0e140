// SPDX-License-Identifier: Apache-2.0
#include "tensors/compare.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace fuse::runtime {
namespace {

constexpr double infinity = std::numeric_limits<double>::infinity();

struct Difference {
  double abs = 0, rel = 0;
};

Difference differ(double got, double exact) {
  if (got == exact || (std::isnan(got) && std::isnan(exact))) return {};
  if (!std::isfinite(got) || !std::isfinite(exact)) return {infinity, infinity};
  const double abs = std::fabs(got - exact);
  return {abs, exact != 0 ? abs / std::fabs(exact) : infinity};
}

Difference differ_exactly(std::int64_t got, std::int64_t exact) {
  if (got == exact) return {};
  const auto a = static_cast<std::uint64_t>(got), b = static_cast<std::uint64_t>(exact);
  const double abs = static_cast<double>(got > exact ? a - b : b - a);
  return {abs, exact != 0 ? abs / std::fabs(static_cast<double>(exact)) : infinity};
}

// "[1, 2]" for element 6 of [4, 4]; the count of elements is not zero here.
std::string position(std::size_t index, const std::vector<std::int64_t>& shape) {
  std::string text;
  for (std::size_t d = shape.size(); d-- > 0;) {
    const auto extent = static_cast<std::size_t>(shape[d]);
    text = std::to_string(index % extent) + (text.empty() ? "" : ", ") + text;
    index /= extent;
  }
  return '[' + text + ']';
}

std::string value_text(const HostTensor& tensor, std::int64_t index) {
  return is_floating(tensor.dtype) ? fmt::format("{:.9g}", tensor.get(index))
                                   : std::to_string(tensor.get_int(index));
}

// Empty if the tensors can be compared at all.
std::string obstacle(const HostTensor& got, const HostTensor& exact) {
  if (got.shape != exact.shape) {
    return fmt::format("shapes differ: got {}, exact {}", type_text(got.dtype, got.shape),
                       type_text(exact.dtype, exact.shape));
  }
  for (const HostTensor* tensor : {&got, &exact}) {
    const auto count = checked_element_count(tensor->shape, tensor->dtype);
    if (!count || tensor->data.size() != static_cast<std::size_t>(*count) * size_of(tensor->dtype)) {
      return fmt::format("{} has {} bytes", type_text(tensor->dtype, tensor->shape), tensor->data.size());
    }
  }
  return {};
}

}  // namespace

CompareResult compare(const HostTensor& got, const HostTensor& exact, const Bound& bound) {
  CompareResult result;
  if (result.text = obstacle(got, exact); !result.text.empty()) {
    result.mismatches = 1;
    result.max_abs = result.max_rel = result.max_bound_ratio = infinity;
    return result;
  }
  const auto count = static_cast<std::size_t>(got.element_count());
  const bool integers = !is_floating(got.dtype) && !is_floating(exact.dtype);
  double worst_abs = 0, worst_bound = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const auto at = static_cast<std::int64_t>(i);
    const double wanted = exact.get(at);
    const Difference error =
        integers ? differ_exactly(got.get_int(at), exact.get_int(at)) : differ(got.get(at), wanted);
    const double allowed = bound(i, wanted);
    // A bound that is NaN or negative allows nothing, and none allows an infinity that does not match.
    const bool inside = error.abs == 0 || (error.abs <= allowed && error.abs < infinity);
    const bool has_ratio = inside || (allowed > 0 && allowed < infinity);
    const double ratio = error.abs == 0 ? 0 : has_ratio ? error.abs / allowed : infinity;
    if (!inside) ++result.mismatches;
    result.max_abs = std::max(result.max_abs, error.abs);
    result.max_rel = std::max(result.max_rel, error.rel);
    if (i == 0 || ratio > result.max_bound_ratio) {
      result.max_bound_ratio = ratio;
      result.worst_index = i;
      worst_abs = error.abs;
      worst_bound = allowed;
    }
  }
  if (count == 0) {
    result.text = "no elements";
    return result;
  }
  const auto worst = static_cast<std::int64_t>(result.worst_index);
  result.text = fmt::format(
      "{} of {} elements of {} beyond the bound; worst at {}: got {}, exact {}, error {:.3g}, bound {:.3g} "
      "({:.3g} of it)",
      result.mismatches, count, type_text(got.dtype, got.shape), position(result.worst_index, got.shape),
      value_text(got, worst), value_text(exact, worst), worst_abs, worst_bound, result.max_bound_ratio);
  return result;
}

CompareResult compare(const HostTensor& got, const HostTensor& exact, double abs, double rel) {
  // 0 * infinity would be a NaN bound where equality was asked for.
  return compare(got, exact,
                 [=](std::size_t, double value) { return rel == 0 ? abs : abs + rel * std::fabs(value); });
}

}  // namespace fuse::runtime
