// Reductions over any set of dims. Elements are combined one after another in row-major order, whatever the
// dims (in another order by a variant). SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/bounds/drawn_sum.hpp"
#include "eval/bounds/sum_order.hpp"
#include "eval/element_functions.hpp"
#include "eval/eval_step.hpp"

namespace fuse::runtime::reference {
namespace {

using ir::Identity;
using ir::Op;

/// Neighbouring dims that are reduced, or kept, together.
struct Group {
  std::int64_t extent;
  bool reduced;
  std::int64_t in_stride = 0;
  std::int64_t out_stride = 0;       ///< the stride in the result; 0 if reduced
  std::int64_t position_stride = 0;  ///< the stride among the elements that become one; 0 if kept
};

std::vector<Group> make_groups(const Step& step) {
  const std::vector<std::int64_t>& shape = step.operand(0).shape();
  const std::vector<std::int64_t>& dims = ir::attr<ir::DimsAttr>(step.node).dims;
  std::vector<Group> groups;
  for (std::size_t d = 0; d < shape.size(); ++d) {
    const bool reduced = std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) != dims.end();
    if (!groups.empty() && groups.back().reduced == reduced) {
      groups.back().extent *= shape[d];
    } else {
      groups.push_back({.extent = shape[d], .reduced = reduced});
    }
  }
  if (groups.empty()) groups.push_back({.extent = 1, .reduced = true});  // a scalar
  std::int64_t in = 1, out = 1, position = 1;
  for (auto group = groups.rbegin(); group != groups.rend(); ++group) {
    group->in_stride = in;
    in *= group->extent;
    std::int64_t& stride = group->reduced ? position : out;
    (group->reduced ? group->position_stride : group->out_stride) = stride;
    stride *= group->extent;
  }
  return groups;
}

/// Calls row(in, out, position) at the start of each run of the last group: in row-major order, or with the
/// reduced groups in the order of a variant.
template <class Row>
void for_rows(const std::vector<Group>& groups, std::uint64_t variant, Row row) {
  for (const Group& group : groups) {
    if (group.extent == 0) return;
  }
  const std::size_t outer = groups.size() - 1;
  std::vector<Order> orders;
  for (const Group& group : groups) orders.emplace_back(group.extent, group.reduced ? variant : 0);
  std::vector<std::int64_t> at(outer, 0);
  while (true) {
    std::int64_t in = 0, out = 0, position = 0;
    for (std::size_t d = 0; d < outer; ++d) {
      const std::int64_t i = orders[d](at[d]);
      in += groups[d].in_stride * i;
      out += groups[d].out_stride * i;
      position += groups[d].position_stride * i;
    }
    row(in, out, position);
    std::size_t d = outer;
    while (d > 0 && ++at[d - 1] == groups[d - 1].extent) at[--d] = 0;
    if (d == 0) return;
  }
}

template <class T, class Combine>
void fold(const std::vector<Group>& groups, std::uint64_t variant, const T* x, T* state, Combine combine) {
  const Group inner = groups.back();
  const Order order(inner.extent, variant);
  for_rows(groups, variant, [&](std::int64_t in, std::int64_t out, std::int64_t) {
    const T* from = x + in;
    if (inner.reduced) {
      T value = state[out];
      for (std::int64_t i = 0; i < inner.extent; ++i) value = combine(value, from[order(i)]);
      state[out] = value;
    } else {
      T* to = state + out;
      for (std::int64_t i = 0; i < inner.extent; ++i) to[i] = combine(to[i], from[i]);
    }
  });
}

template <class T>
T identity_of(Identity identity, DType dtype) {
  constexpr double infinity = std::numeric_limits<double>::infinity();
  switch (identity) {
    case Identity::one:
      return T{1};
    case Identity::lowest:
      if constexpr (std::is_floating_point_v<T>) return -infinity;
      return static_cast<T>(integer_range(dtype).low);
    case Identity::highest:
      if constexpr (std::is_floating_point_v<T>) return infinity;
      return static_cast<T>(integer_range(dtype).high);
    case Identity::zero:
    case Identity::none:
      break;
  }
  return T{0};
}

/// Calls visit(slot, term) for the terms of each result, in the order of the variant.
template <class Visit>
void each_term(const Step& step, Visit visit) {
  const double* x = step.operand(0).real().data();
  const std::vector<Group> groups = make_groups(step);
  const Group inner = groups.back();
  const Order order(inner.extent, inner.reduced ? step.sums : 0);
  for_rows(groups, step.sums, [&](std::int64_t in, std::int64_t out, std::int64_t) {
    for (std::int64_t i = 0; i < inner.extent; ++i)
      visit(static_cast<std::size_t>(out + i * inner.out_stride), x[in + order(i)]);
  });
}

/// A variant's sums, accumulated in A.
template <class A>
ReferenceTensor draw_sums(const Step& step) {
  ReferenceTensor result = step.make();
  std::vector<DrawnSum<A>> sums(result.element_count(), DrawnSum<A>(step.sums));
  each_term(step, [&](std::size_t slot, double term) { sums[slot].add(static_cast<A>(term)); });
  const std::span<double> values = result.elements<double>();
  for (std::size_t i = 0; i < sums.size(); ++i) values[i] = static_cast<double>(sums[i].value());
  round_to(step.dtype(), values.data(), values.size());
  return result;
}

/// All factors in one thread, in 4, in 16, and so on.
std::int64_t factors_of_thread(const Step& step, std::size_t results) {
  const auto factors =
      static_cast<std::int64_t>(step.operand(0).element_count() / std::max<std::size_t>(1, results));
  return std::max<std::int64_t>(2, factors >> (2 * (step.variant % 8)));
}

/// A variant's products. Threads multiply factors of their own: what roundings lose of products near 1 adds
/// up, more of it the shorter these are. Another order may meet partial products that overflow or vanish,
/// where large factors stand before small ones.
template <class A>
ReferenceTensor draw_products(const Step& step) {
  ReferenceTensor result = step.make();
  struct Product {
    A value = 1, own = 1;         // the products of whole threads, and of the thread so far
    std::int64_t factors = 0;     // the thread's factors
    double above = 0, below = 0;  // log2 of the factors beyond 1 on either side
    Wide wide = 1;
  };
  std::vector<Product> products(result.element_count());
  const std::int64_t factors_each = factors_of_thread(step, products.size());
  each_term(step, [&](std::size_t slot, double factor) {
    Product& product = products[slot];
    product.own *= static_cast<A>(factor);
    if (++product.factors == factors_each) {
      product.value *= product.own;
      product.own = 1;
      product.factors = 0;
    }
    product.wide *= static_cast<Wide>(factor);
    const double size = factor == 0 || !std::isfinite(factor) ? 0 : std::log2(std::fabs(factor));
    (size > 0 ? product.above : product.below) += std::fabs(size);
  });
  const std::span<double> values = result.elements<double>();
  for (std::size_t i = 0; i < products.size(); ++i) {
    Product& product = products[i];
    product.value *= product.own;
    std::vector<double> ways = {static_cast<double>(product.value)};
    const bool overflows = product.above >= std::numeric_limits<A>::max_exponent;
    const bool vanishes =
        product.below >= std::numeric_limits<A>::digits - std::numeric_limits<A>::min_exponent;
    const bool lost = !std::isfinite(product.value) || product.value == 0;
    if ((overflows || vanishes) && lost) ways[0] = static_cast<double>(static_cast<A>(product.wide));
    if (overflows) ways.push_back(std::copysign(std::numeric_limits<double>::infinity(), ways[0]));
    if (vanishes) ways.push_back(std::copysign(0.0, ways[0]));
    if (overflows && vanishes) ways.push_back(std::numeric_limits<double>::quiet_NaN());
    const double chance = (drawn_part(step.sums, 2, ways[0]) + 1) / 2;
    values[i] =
        ways[std::min(ways.size() - 1, static_cast<std::size_t>(chance * static_cast<double>(ways.size())))];
  }
  round_to(step.dtype(), values.data(), values.size());
  return result;
}

template <class T, class Combine>
ReferenceTensor reduce_values(const Step& step, Identity identity, Combine combine) {
  ReferenceTensor result = step.make();
  const std::span<T> state = result.elements<T>();
  std::fill(state.begin(), state.end(), identity_of<T>(identity, step.dtype()));
  const T* x = step.operand(0).elements<T>().data();
  const std::vector<Group> groups = make_groups(step);
  if constexpr (std::is_floating_point_v<T>) {
    if constexpr (std::is_same_v<T, double>) {
      if (step.rounds() && step.dtype() != f64) {
        // The sum of two floats in double, rounded to float, is the float sum: 53 >= 2 * 24 + 2 bits.
        fold(groups, step.sums, x, state.data(),
             [&](double a, double b) { return round_f32(combine(a, b)); });
        round_to(step.dtype(), state.data(), state.size());
        return result;
      }
    }
    fold(groups, step.sums, x, state.data(), combine);
  } else {
    fold(groups, 0, x, state.data(), combine);
    wrap_to(step.dtype(), state.data(),
            state.size());  // the low bits of a sum or product need no wrapping before
  }
  return result;
}

/// argmax and argmin: the position of the first element that wins over all before it. 0 where there is none.
template <class T, class Combine>
ReferenceTensor reduce_positions(const Step& step, Combine combine) {
  ReferenceTensor result(step.dtype(), step.shape);
  const std::span<std::int64_t> positions = result.elements<std::int64_t>();
  std::fill(positions.begin(), positions.end(), -1);
  std::vector<T> best(positions.size());
  const T* x = step.operand(0).elements<T>().data();
  const std::vector<Group> groups = make_groups(step);
  const Group inner = groups.back();
  for_rows(groups, 0, [&](std::int64_t in, std::int64_t out, std::int64_t position) {
    for (std::int64_t i = 0; i < inner.extent; ++i) {
      const auto slot = static_cast<std::size_t>(out + i * inner.out_stride);
      const T value = x[in + i];
      // NaN: the combination of two differs from the best by comparing unequal, except that the best is one.
      const bool wins = best[slot] == best[slot] && combine(best[slot], value) != best[slot];
      if (positions[slot] < 0 || wins) {
        best[slot] = value;
        positions[slot] = position + i * inner.position_stride;
      }
    }
  });
  for (std::int64_t& position : positions) position = std::max<std::int64_t>(position, 0);
  return result;
}

template <class T>
ReferenceTensor apply_reduction(const Step& step) {
  switch (step.node.op) {
#define FUSE_REDUCTION(name, operands, identity, combine, note)                              \
  case Op::name: {                                                                           \
    const auto f = [](T a, T b) { return eval::combine(a, b); };                             \
    if constexpr (Identity::identity == Identity::none) return reduce_positions<T>(step, f); \
    return reduce_values<T>(step, Identity::identity, f);                                    \
  }
#include <fuse/ops.def>
    default:
      break;
  }
  step.fail(ErrorCode::internal, "the op is not a reduction");
}

}  // namespace

ReferenceTensor evaluate_reduction(const Step& step) {
  const ReferenceTensor& x = step.operand(0);
  const std::vector<std::int64_t>& dims = ir::attr<ir::DimsAttr>(step.node).dims;
  std::vector<std::int64_t> kept;
  for (std::size_t d = 0; d < x.shape().size(); ++d) {
    if (std::find(dims.begin(), dims.end(), static_cast<std::int64_t>(d)) == dims.end()) {
      kept.push_back(x.shape()[d]);
    }
  }
  if (kept != step.shape) {
    step.fail(ErrorCode::shape_mismatch, "the kept extents are not those of the result for these dims");
  }
  if (step.sums != 0 && step.node.op == Op::reduce_sum && x.is_real()) {
    return x.dtype() == f64 ? draw_sums<double>(step) : draw_sums<float>(step);
  }
  if (step.sums != 0 && step.node.op == Op::reduce_prod && x.is_real()) {
    return x.dtype() == f64 ? draw_products<double>(step) : draw_products<float>(step);
  }
  return step.with_storage(x.dtype(), [&]<class T>() { return apply_reduction<T>(step); });
}

}  // namespace fuse::runtime::reference
