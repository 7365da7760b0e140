// Contractions with any dims, summed in the order of the contracted dims, in one accumulator.
// SPDX-License-Identifier: Apache-2.0
#include "eval/bounds/drawn_sum.hpp"
#include "eval/bounds/sum_order.hpp"
#include "eval/eval_step.hpp"
#include "eval/parallel_for.hpp"

namespace fuse::runtime::reference {
namespace {

using Extents = std::vector<std::int64_t>;

/// A dim of the loop nest and how far it moves in each operand.
struct Loop {
  std::int64_t extent, a, b;
};

/// Where the flat position `at` of some loops is in each operand.
struct Offsets {
  std::int64_t a = 0, b = 0;
};
Offsets offsets_of(const std::vector<Loop>& loops, std::int64_t at) {
  Offsets offsets;
  for (auto loop = loops.rbegin(); loop != loops.rend(); ++loop) {
    offsets.a += at % loop->extent * loop->a;
    offsets.b += at % loop->extent * loop->b;
    at /= loop->extent;
  }
  return offsets;
}

Extents strides_of(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

struct Loops {
  std::vector<Loop> result, contracted;
};

Loops make_loops(const Step& step) {
  const auto& dims = ir::attr<ir::ContractionAttr>(step.node);
  const Extents &a = step.operand(0).shape(), &b = step.operand(1).shape();
  const Extents a_strides = strides_of(a), b_strides = strides_of(b);
  std::vector<bool> a_free(a.size(), true), b_free(b.size(), true);
  const auto pairs = [&](const Extents& left, const Extents& right) {
    std::vector<Loop> loops;
    for (std::size_t i = 0; i < left.size(); ++i) {
      const auto l = static_cast<std::size_t>(left[i]), r = static_cast<std::size_t>(right[i]);
      if (a[l] != b[r]) step.fail(ErrorCode::shape_mismatch, "paired extents differ for these dims");
      a_free[l] = b_free[r] = false;
      loops.push_back({a[l], a_strides[l], b_strides[r]});
    }
    return loops;
  };
  Loops loops;
  loops.result = pairs(dims.batch_a, dims.batch_b);
  loops.contracted = pairs(dims.contract_a, dims.contract_b);
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a_free[i]) loops.result.push_back({a[i], a_strides[i], 0});
  }
  for (std::size_t i = 0; i < b.size(); ++i) {
    if (b_free[i]) loops.result.push_back({b[i], 0, b_strides[i]});
  }
  return loops;
}

template <class T>
class PlainSum {
 public:
  explicit PlainSum(std::uint64_t) {}
  void add_product(T a, T b) { sum_ += a * b; }
  T value() const { return sum_; }

 private:
  T sum_ = 0;
};

/// T accumulates in a Sum, S stores.
template <class T, class Sum = PlainSum<T>, class S>
void contract(const Step& step, const Loops& loops, std::span<S> out) {
  const S* a = step.operand(0).elements<S>().data();
  const S* b = step.operand(1).elements<S>().data();
  std::int64_t length = 1;
  for (const Loop& loop : loops.contracted) length *= loop.extent;
  const Order order(length, step.sums);
  const auto grain = static_cast<std::size_t>(100000 / (length + 1) + 1);
  parallel_for(out.size(), grain, [&](std::size_t from, std::size_t to) {
    for (std::size_t i = from; i < to; ++i) {
      const Offsets base = offsets_of(loops.result, static_cast<std::int64_t>(i));
      Sum sum(step.sums);
      for (std::int64_t k = 0; k < length; ++k) {
        const Offsets at = offsets_of(loops.contracted, order(k));
        sum.add_product(static_cast<T>(a[base.a + at.a]), static_cast<T>(b[base.b + at.b]));
      }
      out[i] = static_cast<S>(sum.value());
    }
  });
}

}  // namespace

ReferenceTensor evaluate_contraction(const Step& step) {
  const Loops loops = make_loops(step);
  ReferenceTensor result = step.make();
  if (result.element_count() == 0) return result;
  if (result.is_wide()) {
    contract<Wide>(step, loops, result.elements<Wide>());
    return result;
  }
  const std::span<double> out = result.elements<double>();
  const bool narrow = step.rounds() && step.operand(0).dtype() != f64;
  if (step.sums != 0) {
    narrow ? contract<float, DrawnSum<float>>(step, loops, out)
           : contract<double, DrawnSum<double>>(step, loops, out);
  } else if (narrow) {
    contract<float>(step, loops, out);
  } else {
    contract<double>(step, loops, out);
  }
  if (step.rounds()) round_to(step.dtype(), out.data(), out.size());
  return result;
}

}  // namespace fuse::runtime::reference
