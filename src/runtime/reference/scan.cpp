// Cumulative sums, one element after another.
// SPDX-License-Identifier: Apache-2.0
#include "runtime/reference/eval.hpp"
#include "runtime/reference/step.hpp"

namespace fuse::runtime::reference {
namespace {

/// `round` is applied to each partial sum.
template <class T, class Round>
void scan(const Step& step, const T* in, T* out, Round round) {
  const auto& attribute = ir::attr<ir::ScanAttr>(step.node);
  const auto axis = static_cast<std::size_t>(attribute.axis);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= step.shape[i];
  for (std::size_t i = axis + 1; i < step.shape.size(); ++i) inner *= step.shape[i];
  const std::int64_t extent = step.shape[axis];
  for (std::int64_t row = 0; row < outer * inner; ++row) {
    const std::int64_t first = row / inner * extent * inner + row % inner;
    T sum = 0;
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t at = first + (attribute.reverse ? extent - 1 - i : i) * inner;
      const T next = round(eval::add(sum, in[at]));
      out[at] = attribute.exclusive ? sum : next;
      sum = next;
    }
  }
}

}  // namespace

ReferenceTensor evaluate_scan(const Step& step) {
  const ReferenceTensor& x = step.operand(0);
  if (x.shape() != step.shape)
    step.fail(ErrorCode::shape_mismatch, "the result has not the operand's extents");
  ReferenceTensor result(step.dtype(), step.shape);
  if (result.element_count() == 0) return result;
  if (x.is_real()) {
    const bool narrow = step.rounds() && step.dtype() != f64;
    scan(step, x.real().data(), result.elements<double>().data(),
         [&](double sum) { return narrow ? round_f32(sum) : sum; });
    return result;
  }
  const std::span<std::int64_t> out = result.elements<std::int64_t>();
  scan(step, x.integer().data(), out.data(), [](std::int64_t sum) { return sum; });
  wrap_to(step.dtype(), out.data(), out.size());  // the low bits of a sum need no wrapping before
  return result;
}

}  // namespace fuse::runtime::reference
