// Element by element: the table's rows, select and convert.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <type_traits>
#include <utility>

#include "eval/bounds/drawn_sum.hpp"
#include "eval/bounds/error_bound.hpp"
#include "eval/element_functions.hpp"
#include "eval/eval_step.hpp"
#include "eval/parallel_for.hpp"

namespace fuse::runtime::reference {
namespace {

using ir::Op;
using ir::OperandClass;
using ir::ResultClass;

constexpr std::size_t chunk = 2048;      // 16 KiB of doubles: rounded while still in the first cache
constexpr std::size_t grain = 1U << 16;  // elements that are worth a thread

/// Moves each result by a random part of the ulps that the op table allows: equal results alike, as a
/// function does. Small whole numbers stay: sin(0) and exp(0) are what they are on every device.
void err_within_table(const Step& step, std::span<double> results) {
  const int ulps = ir::info(step.node.op).ulp;
  if (ulps == 0) return;
  const auto op = static_cast<std::int64_t>(step.node.op);
  for (double& value : results) {
    if (!std::isfinite(value) || (value == std::nearbyint(value) && std::fabs(value) < 0x1p20)) continue;
    value += drawn_part(step.variant, op, value) * ulps * ulp_of(value, step.dtype());
  }
}

/// Calls body(begin, end) for chunks and rounds each to the result's dtype.
template <class R, class Body>
void for_chunks(const Step& step, std::span<R> out, const Body& body) {
  parallel_for(out.size(), grain, [&](std::size_t from, std::size_t to) {
    for (std::size_t begin = from; begin < to; begin += chunk) {
      const std::size_t end = std::min(to, begin + chunk);
      body(begin, end);
      if constexpr (std::is_same_v<R, double>) {
        if (step.variant != 0) err_within_table(step, out.subspan(begin, end - begin));
        if (step.rounds()) round_to(step.dtype(), out.data() + begin, end - begin);
      } else if constexpr (std::is_same_v<R, std::int64_t>) {
        wrap_to(step.dtype(), out.data() + begin, end - begin);
      }
    }
  });
}

void check_shapes(const Step& step) {
  for (const ReferenceTensor* operand : step.operands) {
    if (operand->shape() != step.shape) {
      step.fail(ErrorCode::shape_mismatch, "the operands have different shapes for these dims");
    }
  }
}

template <class R, class T, class F, std::size_t... I>
ReferenceTensor map_operands(const Step& step, F f, std::index_sequence<I...>) {
  const std::array<const T*, sizeof...(I)> from = {step.operand(I).elements<T>().data()...};
  ReferenceTensor result = step.make_in_place();
  const std::span<R> out = result.elements<R>();
  for_chunks(step, out, [&, from, r = out.data()](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) r[i] = static_cast<R>(f(from[I][i]...));
  });
  return result;
}

/// f of the elements of `arity` operands, element by element.
template <int arity, class R, class T, class F>
ReferenceTensor map(const Step& step, F f) {
  return map_operands<R, T>(step, f, std::make_index_sequence<arity>());
}

template <class T>
constexpr bool takes(OperandClass operands) {
  switch (operands) {
    case OperandClass::number:
    case OperandClass::equality:
      return true;
    case OperandClass::real:
      return std::is_floating_point_v<T>;
    case OperandClass::integer:
    case OperandClass::logical:
      return std::is_same_v<T, std::int64_t>;
  }
  return false;
}

/// What eval must return for elements held as T: no conversion may hide a missing overload.
template <OperandClass operands, ResultClass result, class T>
using EvalResult =
    std::conditional_t<result == ResultClass::boolean || operands == OperandClass::logical, bool, T>;

/// What f returns for `arity` values of type T.
template <int arity, class F, class T>
using Applied = decltype([]<std::size_t... I>(const F& f, std::index_sequence<I...>) {
  return f((static_cast<void>(I), T{})...);
}(std::declval<const F&>(), std::make_index_sequence<arity>()));

template <class T>
ReferenceTensor apply_elementwise(const Step& step) {
  switch (step.node.op) {
#define FUSE_ELEMENTWISE(name, arity, operands, result, ulp, traits, cuda, note)                          \
  case Op::name:                                                                                          \
    if constexpr (takes<T>(OperandClass::operands)) {                                                     \
      const auto f = [](auto... v) { return eval::name(v...); };                                          \
      using Returned = EvalResult<OperandClass::operands, ResultClass::result, T>;                        \
      static_assert(std::is_same_v<Applied<arity, decltype(f), T>, Returned>);                            \
      return map<arity, std::conditional_t<std::is_same_v<Returned, bool>, std::int64_t, T>, T>(step, f); \
    }                                                                                                     \
    break;
#include <fuse/ops.def>
    default:
      break;
  }
  step.fail(ErrorCode::dtype_mismatch, "the op does not take this dtype");
}

template <class T>
ReferenceTensor convert_floats(const Step& step) {
  using Int = std::int64_t;
  const DType to = step.dtype();
  if (is_floating(to)) return map<1, T, T>(step, [](T v) { return v; });
  if (to == i64) return map<1, Int, T>(step, truncate_to<Int, T>);
  if (to == i32) return map<1, Int, T>(step, truncate_to<std::int32_t, T>);
  if (to == i8) return map<1, Int, T>(step, truncate_to<std::int8_t, T>);
  if (to == u8) return map<1, Int, T>(step, truncate_to<std::uint8_t, T>);
  return map<1, Int, T>(step, [](T v) { return v != 0; });
}

}  // namespace

ReferenceTensor evaluate_elementwise(const Step& step) {
  check_shapes(step);
  const DType operand = step.operand(0).dtype();
  for (const ReferenceTensor* other : step.operands) {
    if (other->is_real() != is_floating(operand)) {
      step.fail(ErrorCode::dtype_mismatch, "the operands have different dtypes");
    }
  }
  return step.with_storage(operand, [&]<class T>() { return apply_elementwise<T>(step); });
}

ReferenceTensor evaluate_select(const Step& step) {
  check_shapes(step);
  const auto condition = step.operand(0).integer();
  ReferenceTensor result = step.make();
  step.with_storage(step.dtype(), [&]<class T>() {
    const std::span<T> out = result.elements<T>();
    for_chunks(
        step, out,
        [&, c = condition.data(), a = step.operand(1).elements<T>().data(),
         b = step.operand(2).elements<T>().data(), r = out.data()](std::size_t begin, std::size_t end) {
          for (std::size_t i = begin; i < end; ++i) r[i] = c[i] != 0 ? a[i] : b[i];
        });
  });
  return result;
}

ReferenceTensor evaluate_convert(const Step& step) {
  check_shapes(step);
  using Int = std::int64_t;
  const DType to = step.dtype();
  if (step.operand(0).is_wide()) return convert_floats<Wide>(step);
  if (step.operand(0).is_real()) return convert_floats<double>(step);
  if (is_half(to) && step.rounds()) return map<1, double, Int>(step, sticky_double);
  if (to == f32 && step.rounds()) {
    return map<1, double, Int>(step, [](Int v) { return static_cast<double>(static_cast<float>(v)); });
  }
  if (is_floating(to) && step.floats == Hold::wide) {
    return map<1, Wide, Int>(step, [](Int v) { return static_cast<Wide>(v); });
  }
  if (is_floating(to)) return map<1, double, Int>(step, [](Int v) { return static_cast<double>(v); });
  if (kind_of(to) == DTypeKind::boolean) return map<1, Int, Int>(step, [](Int v) { return v != 0; });
  return map<1, Int, Int>(step, [](Int v) { return v; });
}

}  // namespace fuse::runtime::reference
