// Cumulative sums, one element after another.
// SPDX-License-Identifier: Apache-2.0
#include <type_traits>

#include "eval/bounds/drawn_sum.hpp"
#include "eval/bounds/sum_order.hpp"
#include "eval/element_functions.hpp"
#include "eval/eval_step.hpp"

namespace fuse::runtime::reference {
namespace {

/// Rounds each partial sum to f32 where asked to.
template <class T>
class RoundedSum {
 public:
  explicit RoundedSum(bool to_f32 = false) : to_f32_(to_f32) {}
  void add(T term) {
    sum_ = eval::add(sum_, term);
    if constexpr (std::is_same_v<T, double>) sum_ = to_f32_ ? round_f32(sum_) : sum_;
  }
  void add_sum(const RoundedSum& other) { add(other.value()); }
  T value() const { return sum_; }

 private:
  bool to_f32_;
  T sum_ = 0;
};

/// Each row begins with a copy of `empty`, whose elements are A.
template <class A, class T, class Sum>
void scan(const Step& step, const T* in, T* out, const Sum& empty) {
  const auto& attribute = ir::attr<ir::ScanAttr>(step.node);
  const auto axis = static_cast<std::size_t>(attribute.axis);
  std::int64_t outer = 1, inner = 1;
  for (std::size_t i = 0; i < axis; ++i) outer *= step.shape[i];
  for (std::size_t i = axis + 1; i < step.shape.size(); ++i) inner *= step.shape[i];
  const std::int64_t extent = step.shape[axis];
  // A variant sums each segment alone and adds what stands before it.
  const std::int64_t segment = step.sums == 0 ? extent : 1 + Order(extent, step.sums)(0);
  for (std::int64_t row = 0; row < outer * inner; ++row) {
    const std::int64_t first = row / inner * extent * inner + row % inner;
    Sum before = empty, sum = empty;
    const auto total = [&] {
      Sum both = before;
      both.add_sum(sum);
      return static_cast<T>(both.value());
    };
    for (std::int64_t i = 0; i < extent; ++i) {
      const std::int64_t at = first + (attribute.reverse ? extent - 1 - i : i) * inner;
      if (i > 0 && i % segment == 0) {
        before.add_sum(sum);
        sum = empty;
      }
      if (attribute.exclusive) out[at] = total();
      sum.add(static_cast<A>(in[at]));
      if (!attribute.exclusive) out[at] = total();
    }
  }
}

}  // namespace

ReferenceTensor evaluate_scan(const Step& step) {
  const ReferenceTensor& x = step.operand(0);
  if (x.shape() != step.shape)
    step.fail(ErrorCode::shape_mismatch, "the result has not the operand's extents");
  ReferenceTensor result = step.make();
  if (result.element_count() == 0) return result;
  if (x.is_wide()) {
    scan<Wide>(step, x.elements<Wide>().data(), result.elements<Wide>().data(), RoundedSum<Wide>());
    return result;
  }
  if (x.is_real()) {
    const bool narrow = step.rounds() && step.dtype() != f64;
    const double* in = x.real().data();
    double* out = result.elements<double>().data();
    if (step.sums == 0) {
      scan<double>(step, in, out, RoundedSum<double>(narrow));
    } else if (narrow) {
      scan<float>(step, in, out, DrawnSum<float>(step.sums));
    } else {
      scan<double>(step, in, out, DrawnSum<double>(step.sums));
    }
    return result;
  }
  const std::span<std::int64_t> out = result.elements<std::int64_t>();
  scan<std::int64_t>(step, x.integer().data(), out.data(), RoundedSum<std::int64_t>());
  wrap_to(step.dtype(), out.data(), out.size());  // the low bits of a sum need no wrapping before
  return result;
}

}  // namespace fuse::runtime::reference
