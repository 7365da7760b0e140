// Operators, reductions and products: numbers become constants, half types are widened, shapes are broadcast,
// and every step is an explicit node. Functions that move elements are in builder_movement.cpp.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/builder/call.hpp"
#include "ir/graph/infer.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using detail::AxisList;
using detail::Builder;
using detail::Call;
using ir::Op;

/// `name`: of the function that was called, where it is not the op's.
Tensor elementwise(Op op, std::vector<Arg> args, std::string_view name = {}) {
  const ir::OpInfo& info = ir::info(op);
  const Call call{name.empty() ? info.name : name, std::move(args)};
  const DType dtype = call.common_dtype(0);
  const std::vector<Dim> shape = call.common_shape();
  // Rounding is part of the graph. A logical op refuses halves by itself.
  const DType compute = is_half(dtype) && info.operands != ir::OperandClass::logical ? f32 : dtype;
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    operands.push_back(call.operand(i, dtype, compute, shape));
  }
  const Tensor result = call.add(op, operands);
  return info.result == ir::ResultClass::boolean ? result : call.convert(result, dtype);
}

AxisList reduced_axes(const Call& call, AxisList axes) {
  if (axes.empty()) {
    for (std::int64_t i = 0; i < call.type(0).rank(); ++i) axes.push_back(i);
  }
  return call.axes(std::move(axes));
}

/// The sum divided by the number of elements.
Tensor divided_by_count(const Call& call, const Tensor& total, const Dim& count) {
  const Arg sum(total, call.at);
  if (!count.is_constant()) {
    const Tensor size = call.add(Op::dim_size, {}, ir::DimAttr{count});
    return elementwise(Op::div, {sum, Arg(call.convert(size, Builder::type(total).dtype), call.at)});
  }
  const std::int64_t n = count.constant();
  // The reciprocal of a power of two is exact; of another number it would round a second time.
  if (std::has_single_bit(static_cast<std::uint64_t>(n))) {
    return elementwise(Op::mul, {sum, Arg(1.0 / static_cast<double>(n), call.at)});
  }
  return elementwise(Op::div, {sum, Arg(static_cast<double>(n), call.at)});
}

Tensor reduce(Op op, std::string_view name, const Arg& x, AxisList axes, bool keep_dims,
              bool averages = false) {
  const Call call{name, {x}};
  const ir::Type type = call.type(0);
  if (averages && !is_floating(type.dtype)) {
    call.fail(ErrorCode::dtype_mismatch,
              fmt::format("the mean of {} is no {}", to_string(type.dtype), to_string(type.dtype)),
              "convert the operand to f32 first");
  }
  axes = reduced_axes(call, std::move(axes));
  if (axes.empty()) {  // a scalar is its own reduction
    const bool logical = ir::info(op).operands == ir::OperandClass::logical;
    if (logical != (kind_of(type.dtype) == DTypeKind::boolean)) {
      call.fail(ErrorCode::dtype_mismatch, logical ? "a number is no bool" : "a bool is no number",
                logical ? "compare the operand first" : "convert the operand to i32 first");
    }
    return x.tensor();
  }
  Dim count = 1;
  std::vector<Dim> kept = type.dims;
  for (const std::int64_t axis : axes) {
    Dim& extent = kept[static_cast<std::size_t>(axis)];
    count = count * extent;
    extent = 1;
  }
  Tensor result = call.add(op, {call.widen(x.tensor())}, ir::DimsAttr{std::move(axes)});
  if (averages) result = divided_by_count(call, result, count);
  if (is_half(type.dtype) && ir::info(op).identity != ir::Identity::none)
    result = call.convert(result, type.dtype);
  return keep_dims ? call.reshape(result, std::move(kept)) : result;
}

/// The type that the operands give; what it needs of the extents is noted where the op is added.
ir::Type infer(const Call& call, Op op, const std::vector<ir::Type>& operands, const ir::Attr& attr) {
  std::vector<DimRelation> needs;
  return ir::infer_type(op, operands, attr, nullptr, call.builder.where(call.at), &needs);
}

}  // namespace

Tensor operator+(const Arg& a, const Arg& b) { return elementwise(Op::add, {a, b}); }
Tensor operator-(const Arg& a, const Arg& b) { return elementwise(Op::sub, {a, b}); }
Tensor operator*(const Arg& a, const Arg& b) { return elementwise(Op::mul, {a, b}); }
Tensor operator/(const Arg& a, const Arg& b) { return elementwise(Op::div, {a, b}); }
Tensor operator%(const Arg& a, const Arg& b) { return elementwise(Op::rem, {a, b}); }
Tensor operator-(const Arg& a) { return elementwise(Op::neg, {a}); }
Tensor operator==(const Arg& a, const Arg& b) { return elementwise(Op::eq, {a, b}); }
Tensor operator!=(const Arg& a, const Arg& b) { return elementwise(Op::ne, {a, b}); }
Tensor operator<(const Arg& a, const Arg& b) { return elementwise(Op::lt, {a, b}); }
Tensor operator<=(const Arg& a, const Arg& b) { return elementwise(Op::le, {a, b}); }
Tensor operator>(const Arg& a, const Arg& b) { return elementwise(Op::gt, {a, b}); }
Tensor operator>=(const Arg& a, const Arg& b) { return elementwise(Op::ge, {a, b}); }
Tensor operator&&(const Arg& a, const Arg& b) { return elementwise(Op::logical_and, {a, b}); }
Tensor operator||(const Arg& a, const Arg& b) { return elementwise(Op::logical_or, {a, b}); }
Tensor operator!(const Arg& a) { return elementwise(Op::logical_not, {a}); }

Tensor operator~(const Arg& a) { return elementwise(Op::bit_not, {a}); }
Tensor operator&(const Arg& a, const Arg& b) { return elementwise(Op::bit_and, {a, b}); }
Tensor operator|(const Arg& a, const Arg& b) { return elementwise(Op::bit_or, {a, b}); }
Tensor operator^(const Arg& a, const Arg& b) { return elementwise(Op::bit_xor, {a, b}); }
Tensor operator<<(const Arg& a, const Arg& b) { return elementwise(Op::shift_left, {a, b}); }
Tensor operator>>(const Arg& a, const Arg& b) { return elementwise(Op::shift_right, {a, b}); }

Tensor abs(const Arg& x) { return elementwise(Op::abs, {x}); }
Tensor sign(const Arg& x) { return elementwise(Op::sign, {x}); }
Tensor floor(const Arg& x) { return elementwise(Op::floor, {x}); }
Tensor ceil(const Arg& x) { return elementwise(Op::ceil, {x}); }
Tensor round(const Arg& x) { return elementwise(Op::round, {x}); }
Tensor sqrt(const Arg& x) { return elementwise(Op::sqrt, {x}); }
Tensor rsqrt(const Arg& x) { return elementwise(Op::rsqrt, {x}); }
Tensor reciprocal(const Arg& x) { return elementwise(Op::reciprocal, {x}); }
Tensor exp(const Arg& x) { return elementwise(Op::exp, {x}); }
Tensor exp2(const Arg& x) { return elementwise(Op::exp2, {x}); }
Tensor expm1(const Arg& x) { return elementwise(Op::expm1, {x}); }
Tensor log(const Arg& x) { return elementwise(Op::log, {x}); }
Tensor log2(const Arg& x) { return elementwise(Op::log2, {x}); }
Tensor log1p(const Arg& x) { return elementwise(Op::log1p, {x}); }
Tensor sin(const Arg& x) { return elementwise(Op::sin, {x}); }
Tensor cos(const Arg& x) { return elementwise(Op::cos, {x}); }
Tensor tanh(const Arg& x) { return elementwise(Op::tanh, {x}); }
Tensor erf(const Arg& x) { return elementwise(Op::erf, {x}); }
Tensor pow(const Arg& a, const Arg& b) { return elementwise(Op::pow, {a, b}); }
Tensor maximum(const Arg& a, const Arg& b) { return elementwise(Op::max, {a, b}, "maximum"); }
Tensor minimum(const Arg& a, const Arg& b) { return elementwise(Op::min, {a, b}, "minimum"); }

Tensor select(const Arg& condition, const Arg& a, const Arg& b) {
  const Call call{"select", {condition, a, b}};
  const DType dtype = call.common_dtype(1);
  if (!condition.is_number() && Builder::type(condition.tensor()).dtype != DType::boolean) {
    call.fail(ErrorCode::dtype_mismatch, "the condition is no bool", "compare it, as in x != 0");
  }
  const std::vector<Dim> shape = call.common_shape();
  const Tensor chosen = call.operand(0, DType::boolean, DType::boolean, shape);
  const Tensor when = call.operand(1, dtype, dtype, shape);
  return call.add(Op::select, {chosen, when, call.operand(2, dtype, dtype, shape)});
}

Tensor where(const Arg& condition, const Arg& a, const Arg& b) { return select(condition, a, b); }

Tensor is_nan(const Arg& x) { return elementwise(Op::is_nan, {x}); }
Tensor is_inf(const Arg& x) { return elementwise(Op::is_inf, {x}); }
Tensor atan2(const Arg& y, const Arg& x) { return elementwise(Op::atan2, {y, x}); }
Tensor clamp(const Arg& x, const Arg& low, const Arg& high) { return elementwise(Op::clamp, {x, low, high}); }

Tensor convert(const Arg& x, DType dtype) {
  const Call call{"convert", {x}};
  return call.convert(call.tensor(0), dtype);
}

Tensor sum(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_sum, "sum", x, axes.list(), options.keep_dims);
}
Tensor prod(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_prod, "prod", x, axes.list(), options.keep_dims);
}
Tensor max(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_max, "max", x, axes.list(), options.keep_dims);
}
Tensor min(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_min, "min", x, axes.list(), options.keep_dims);
}
Tensor any(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_any, "any", x, axes.list(), options.keep_dims);
}
Tensor all(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_all, "all", x, axes.list(), options.keep_dims);
}
Tensor mean(const Arg& x, const Axes& axes, ReduceOptions options) {
  return reduce(Op::reduce_sum, "mean", x, axes.list(), options.keep_dims, true);
}
Tensor argmax(const Arg& x, std::int64_t axis, ReduceOptions options) {
  return reduce(Op::argmax, "argmax", x, {axis}, options.keep_dims);
}
Tensor argmin(const Arg& x, std::int64_t axis, ReduceOptions options) {
  return reduce(Op::argmin, "argmin", x, {axis}, options.keep_dims);
}

Tensor cumulative_sum(const Arg& x, std::int64_t axis, ScanOptions options) {
  const Call call{"cumulative_sum", {x}};
  const ir::Type type = call.type(0);
  const Tensor result =
      call.add(Op::cumulative_sum, {call.widen(call.tensor(0))},
               ir::ScanAttr{call.axis(axis, type.rank()), options.exclusive, options.reverse});
  return call.convert(result, type.dtype);
}

Tensor matmul(const Arg& a, const Arg& b, const MatmulOptions& options) {
  const Call call{"matmul", {a, b}};
  const std::vector<ir::Type> operands = {call.type(0), call.type(1)};
  const ir::MatmulAttr attr{options.transpose_a, options.transpose_b};
  ir::Type type = infer(call, Op::matmul, operands, attr);
  type.dtype = options.result.value_or(type.dtype);
  return call.add(Op::matmul, {call.tensor(0), call.tensor(1)}, attr, &type);
}

Tensor contraction(const Arg& a, const Arg& b, ContractionDims dims, std::optional<DType> result) {
  const Call call{"contraction", {a, b}};
  const std::vector<ir::Type> operands = {call.type(0), call.type(1)};
  for (AxisList* axes : {&dims.batch_a, &dims.contract_a}) {
    for (std::int64_t& axis : *axes) axis = call.axis(axis, operands[0].rank());
  }
  for (AxisList* axes : {&dims.batch_b, &dims.contract_b}) {
    for (std::int64_t& axis : *axes) axis = call.axis(axis, operands[1].rank());
  }
  ir::ContractionAttr attr{std::move(dims.batch_a), std::move(dims.batch_b), std::move(dims.contract_a),
                           std::move(dims.contract_b)};
  ir::Type type = infer(call, Op::contraction, operands, attr);
  type.dtype = result.value_or(type.dtype);
  return call.add(Op::contraction, {call.tensor(0), call.tensor(1)}, std::move(attr), &type);
}

Tensor random_uniform(DType dtype, std::vector<Dim> dims, const Arg& seed, const Arg& offset) {
  const Call call{"random_uniform", {seed, offset}};
  const ir::Type type{dtype, std::move(dims)};
  const Tensor key = seed.is_number() ? call.operand(0, i64, i64, {}) : call.tensor(0);
  const Tensor draw = offset.is_number() ? call.operand(1, i64, i64, {}) : call.tensor(1);
  const Tensor result =
      call.add(Op::random_uniform, {key, draw}, ir::RandomAttr{call.builder.next_stream}, &type);
  ++call.builder.next_stream;
  return result;
}

Tensor custom_call(const CustomKernel& kernel, const std::vector<Tensor>& operands, DType dtype,
                   std::vector<Dim> dims, std::source_location at) {
  if (operands.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = fmt::format("the kernel '{}' has no operands", kernel.name),
                 .op = "custom_call",
                 .location = at,
                 .hint = "give one tensor or more: the graph of the call is theirs"});
  }
  std::vector<Arg> args;
  for (const Tensor& operand : operands) args.emplace_back(operand, at);
  const Call call{"custom_call", std::move(args)};
  ir::CustomAttr attr{kernel.name,    kernel.source, kernel.threads,      kernel.shared_bytes, kernel.grid,
                      kernel.extents, nullptr,       kernel.grid_barrier, kernel.parts};
  if (kernel.reference) attr.reference = std::make_shared<const CustomReference>(kernel.reference);
  const ir::Type type{dtype, std::move(dims)};
  return call.add(Op::custom_call, operands, std::move(attr), &type);
}

}  // namespace v0
}  // namespace fuse
