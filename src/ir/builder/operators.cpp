// Operators and primitive functions: numbers become constants, half types are widened, shapes are broadcast,
// and every step is an explicit node.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "ir/builder/builder.hpp"
#include "ir/dims/disproof.hpp"
#include "ir/graph/infer.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using detail::Builder;
using ir::Op;
using Axes = std::vector<std::int64_t>;

/// One call being lowered: what errors name, and where nodes go.
struct Call {
  std::string_view name;
  std::vector<Arg> args;
  std::source_location at = args.at(0).at();
  Builder& builder = Builder::of(name, args);

  [[noreturn]] void fail(ErrorCode code, std::string message, std::string hint) const {
    builder.fail(code, name, args, std::move(message), std::move(hint), at);
  }
  Tensor add(Op op, const std::vector<Tensor>& operands, ir::Attr attr = ir::NoAttr{},
             const ir::Type* declared = nullptr) const {
    return builder.add(op, operands, std::move(attr), declared, at);
  }

  /// Operand `i`, which must not be a number; by value, since adding a node moves the others.
  ir::Type type(std::size_t i) const { return Builder::type(tensor(i)); }
  const Tensor& tensor(std::size_t i) const {
    if (args[i].is_number()) {
      fail(ErrorCode::invalid_argument, "a number stands where a tensor is needed",
           "make it a tensor with Graph::constant");
    }
    return args[i].tensor();
  }

  std::int64_t axis(std::int64_t axis, std::int64_t rank) const {
    if (axis >= -rank && axis < rank) return axis < 0 ? axis + rank : axis;
    fail(ErrorCode::invalid_argument, fmt::format("axis {} is out of range for rank {}", axis, rank),
         rank == 0 ? "a scalar has no axes" : fmt::format("axes are {} to {}", -rank, rank - 1));
  }

  Tensor convert(const Tensor& x, DType dtype) const {
    ir::Type type = Builder::type(x);
    if (type.dtype == dtype) return x;
    type.dtype = dtype;
    return add(Op::convert, {x}, {}, &type);
  }
  Tensor widen(const Tensor& x) const { return is_half(Builder::type(x).dtype) ? convert(x, f32) : x; }

  Tensor reshape(const Tensor& x, std::vector<Dim> dims) const {
    const ir::Type type{Builder::type(x).dtype, std::move(dims)};
    return type == Builder::type(x) ? x : add(Op::reshape, {x}, {}, &type);
  }

  /// Repeats x to a shape that it is known to broadcast to.
  Tensor spread(const Tensor& x, const std::vector<Dim>& dims) const {
    const ir::Type type{Builder::type(x).dtype, dims};
    if (type == Builder::type(x)) return x;
    ir::DimsAttr attr;
    for (std::int64_t i = type.rank() - Builder::type(x).rank(); i < type.rank(); ++i) attr.dims.push_back(i);
    return add(Op::broadcast_in_dim, {x}, std::move(attr), &type);
  }

  /// The one dtype of the tensors among args[first..].
  DType common_dtype(std::size_t first) const {
    std::optional<DType> dtype;
    for (std::size_t i = first; i < args.size(); ++i) {
      if (args[i].is_number()) continue;
      const DType own = Builder::type(args[i].tensor()).dtype;
      if (dtype && own != *dtype) {
        fail(ErrorCode::dtype_mismatch,
             fmt::format("operands have types {} and {}", to_string(*dtype), to_string(own)),
             fmt::format("convert one of them, as in convert(x, fuse::{})", to_string(*dtype)));
      }
      dtype = own;
    }
    if (!dtype) {
      fail(ErrorCode::dtype_mismatch, "numbers alone have no element type",
           "make one of them a tensor with Graph::constant");
    }
    return *dtype;
  }

  /// The shape that all operands broadcast to: aligned at the right, extents equal or 1.
  std::vector<Dim> common_shape() const {
    std::vector<Dim> shape;
    for (const Arg& arg : args) {
      if (arg.is_number()) continue;
      const std::vector<Dim>& dims = Builder::type(arg.tensor()).dims;
      if (dims.size() > shape.size()) shape.insert(shape.begin(), dims.size() - shape.size(), Dim(1));
      for (std::size_t i = 0; i < dims.size(); ++i) {
        const Dim& own = dims[dims.size() - 1 - i];
        Dim& extent = shape[shape.size() - 1 - i];
        if (extent == own || own.is(1)) continue;
        if (!extent.is(1)) {
          if (ir::can_be_equal(extent, own)) continue;  // a guard, unless a fact proves it
          fail(ErrorCode::shape_mismatch,
               fmt::format("extents {} and {} of dim {} differ", extent.to_string(), own.to_string(),
                           -static_cast<std::int64_t>(i) - 1),
               "shapes align at the right; extents must be equal or 1");
        }
        extent = own;
      }
    }
    return shape;
  }

  /// Operand `i` as a tensor of `compute` and `shape`. A number is rounded to `dtype` first.
  Tensor operand(std::size_t i, DType dtype, DType compute, const std::vector<Dim>& shape) const {
    if (!args[i].is_number()) return spread(convert(args[i].tensor(), compute), shape);
    const ir::Type scalar{compute, {}};
    return spread(add(Op::constant, {}, builder.literal(dtype, args[i], name, args), &scalar), shape);
  }
};

Tensor elementwise(Op op, std::vector<Arg> args) {
  const ir::OpInfo& info = ir::info(op);
  const Call call{info.name, std::move(args)};
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

/// The axes counted from the start, sorted.
Axes named_axes(const Call& call, Axes axes) {
  const std::int64_t rank = call.type(0).rank();
  for (std::int64_t& axis : axes) axis = call.axis(axis, rank);
  std::sort(axes.begin(), axes.end());
  if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end()) {
    call.fail(ErrorCode::invalid_argument, fmt::format("axis {} is named twice", *twice),
              "name each axis once; a negative axis counts from the end");
  }
  return axes;
}

Axes reduced_axes(const Call& call, Axes axes) {
  if (axes.empty()) {
    for (std::int64_t i = 0; i < call.type(0).rank(); ++i) axes.push_back(i);
  }
  return named_axes(call, std::move(axes));
}

/// The operands of a dynamic slice: numbers among the starts take the type of the others.
std::vector<Tensor> with_starts(const Call& call, std::size_t first) {
  DType dtype = i64;
  for (std::size_t i = call.args.size(); i-- > first;) {
    if (!call.args[i].is_number()) dtype = call.type(i).dtype;
  }
  std::vector<Tensor> operands;
  for (std::size_t i = 0; i < call.args.size(); ++i) {
    const bool number = i >= first && call.args[i].is_number();
    operands.push_back(number ? call.operand(i, dtype, dtype, {}) : call.tensor(i));
  }
  return operands;
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

Tensor reduce(Op op, std::string_view name, const Arg& x, Axes axes, bool keep_dims, bool averages = false) {
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

/// Replaces the one -1 in `dims` by what the others leave of the operand.
void resolve_extent(const Call& call, std::vector<Dim>& dims) {
  const auto unknown = std::find(dims.begin(), dims.end(), Dim(-1));
  if (unknown == dims.end()) return;
  if (std::find(unknown + 1, dims.end(), Dim(-1)) != dims.end()) {
    call.fail(ErrorCode::invalid_argument, "more than one extent is -1", "state all extents but one");
  }
  // Equal extents cancel first: B * T / B is T also where B may be 0.
  std::vector<Dim> left = call.type(0).dims, known;
  for (auto dim = dims.begin(); dim != dims.end(); ++dim) {
    if (dim == unknown) continue;
    const auto same = dim->is(0) ? left.end() : std::find(left.begin(), left.end(), *dim);
    if (same == left.end()) {
      known.push_back(*dim);
    } else {
      left.erase(same);
    }
  }
  const Dim total = product(left), divisor = product(known);
  *unknown = 1;
  if (divisor.is(0) || !ir::can_be_equal(total, divisor * (total / divisor))) {
    call.fail(ErrorCode::shape_mismatch,
              fmt::format("the extent -1 is not determined: {} is not known to be a multiple of {}",
                          product(call.type(0).dims).to_string(), product(dims).to_string()),
              "state the extent");
  }
  *unknown = total / divisor;
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
Tensor max(const Arg& a, const Arg& b) { return elementwise(Op::max, {a, b}); }
Tensor min(const Arg& a, const Arg& b) { return elementwise(Op::min, {a, b}); }

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

Tensor is_nan(const Arg& x) { return elementwise(Op::is_nan, {x}); }
Tensor is_inf(const Arg& x) { return elementwise(Op::is_inf, {x}); }
Tensor atan2(const Arg& y, const Arg& x) { return elementwise(Op::atan2, {y, x}); }
Tensor clamp(const Arg& x, const Arg& low, const Arg& high) { return elementwise(Op::clamp, {x, low, high}); }

Tensor convert(const Arg& x, DType dtype) {
  const Call call{"convert", {x}};
  return call.convert(call.tensor(0), dtype);
}

Tensor broadcast_to(const Arg& x, std::vector<Dim> dims) {
  const Call call{"broadcast_to", {x}};
  const ir::Type type = call.type(0);
  const std::size_t rank = type.dims.size();
  bool fits = dims.size() >= rank;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    const Dim& own = type.dims[rank - 1 - i];
    fits = own.is(1) || ir::can_be_equal(own, dims[dims.size() - 1 - i]);
  }
  if (!fits) {
    call.fail(ErrorCode::shape_mismatch,
              fmt::format("the operand does not broadcast to {}", ir::to_string({type.dtype, dims})),
              "shapes align at the right; an extent of the operand must be 1 or equal");
  }
  return call.spread(call.tensor(0), dims);
}

Tensor broadcast_in_dim(const Arg& x, std::vector<Dim> result_dims, std::vector<std::int64_t> dims) {
  const Call call{"broadcast_in_dim", {x}};
  const ir::Type type{call.type(0).dtype, std::move(result_dims)};
  for (std::int64_t& dim : dims) dim = call.axis(dim, type.rank());
  return call.add(Op::broadcast_in_dim, {call.tensor(0)}, ir::DimsAttr{std::move(dims)}, &type);
}

Tensor reshape(const Arg& x, std::vector<Dim> dims) {
  const Call call{"reshape", {x}};
  resolve_extent(call, dims);
  return call.reshape(call.tensor(0), std::move(dims));
}

Tensor transpose(const Arg& x, std::vector<std::int64_t> permutation) {
  const Call call{"transpose", {x}};
  const std::int64_t rank = call.type(0).rank();
  for (std::int64_t& dim : permutation) dim = call.axis(dim, rank);
  return call.add(Op::transpose, {call.tensor(0)}, ir::DimsAttr{std::move(permutation)});
}

Tensor slice(const Arg& x, std::int64_t axis, const Dim& start, const Dim& limit, std::int64_t stride) {
  const Call call{"slice", {x}};
  const std::vector<Dim> dims = call.type(0).dims;
  const auto along = static_cast<std::size_t>(call.axis(axis, static_cast<std::int64_t>(dims.size())));
  ir::SliceAttr attr{std::vector<Dim>(dims.size(), Dim(0)), dims, Axes(dims.size(), 1)};
  attr.starts[along] = start;
  attr.limits[along] = limit;
  attr.strides[along] = stride;
  return call.add(Op::slice, {call.tensor(0)}, std::move(attr));
}

Tensor reverse(const Arg& x, std::vector<std::int64_t> axes) {
  const Call call{"reverse", {x}};
  if (axes.empty()) return call.tensor(0);
  return call.add(Op::reverse, {call.tensor(0)}, ir::DimsAttr{named_axes(call, std::move(axes))});
}

Tensor pad(const Arg& x, const Arg& value, std::vector<Dim> low, std::vector<Dim> high) {
  const Call call{"pad", {x, value}};
  const DType dtype = call.type(0).dtype;
  const Tensor filler = value.is_number() ? call.operand(1, dtype, dtype, {}) : call.tensor(1);
  return call.add(Op::pad, {call.tensor(0), filler}, ir::PadAttr{std::move(low), std::move(high)});
}

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis, std::source_location at) {
  if (parts.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "there is nothing to concatenate",
                 .op = "concat",
                 .location = at,
                 .hint = "give one tensor or more"});
  }
  std::vector<Arg> args;
  for (const Tensor& part : parts) args.emplace_back(part, at);
  const Call call{"concat", std::move(args)};
  return call.add(Op::concat, parts, ir::AxisAttr{call.axis(axis, call.type(0).rank())});
}

Tensor gather(const Arg& x, const Arg& indices, std::int64_t axis) {
  const Call call{"gather", {x, indices}};
  const ir::AxisAttr attr{call.axis(axis, call.type(0).rank())};
  return call.add(Op::gather, {call.tensor(0), call.tensor(1)}, attr);
}

Tensor dynamic_slice(const Arg& x, const std::vector<Arg>& starts, std::vector<Dim> sizes) {
  std::vector<Arg> args = {x};
  args.insert(args.end(), starts.begin(), starts.end());
  const Call call{"dynamic_slice", std::move(args)};
  return call.add(Op::dynamic_slice, with_starts(call, 1), ir::SizesAttr{std::move(sizes)});
}

Tensor dynamic_update_slice(const Arg& x, const Arg& update, const std::vector<Arg>& starts) {
  std::vector<Arg> args = {x, update};
  args.insert(args.end(), starts.begin(), starts.end());
  const Call call{"dynamic_update_slice", std::move(args)};
  return call.add(Op::dynamic_update_slice, with_starts(call, 2));
}

Tensor sum(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_sum, "sum", x, std::move(axes), keep_dims);
}
Tensor prod(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_prod, "prod", x, std::move(axes), keep_dims);
}
Tensor reduce_max(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_max, "reduce_max", x, std::move(axes), keep_dims);
}
Tensor reduce_min(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_min, "reduce_min", x, std::move(axes), keep_dims);
}
Tensor any(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_any, "any", x, std::move(axes), keep_dims);
}
Tensor all(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_all, "all", x, std::move(axes), keep_dims);
}
Tensor mean(const Arg& x, std::vector<std::int64_t> axes, bool keep_dims) {
  return reduce(Op::reduce_sum, "mean", x, std::move(axes), keep_dims, true);
}
Tensor argmax(const Arg& x, std::int64_t axis, bool keep_dims) {
  return reduce(Op::argmax, "argmax", x, {axis}, keep_dims);
}
Tensor argmin(const Arg& x, std::int64_t axis, bool keep_dims) {
  return reduce(Op::argmin, "argmin", x, {axis}, keep_dims);
}

Tensor cumulative_sum(const Arg& x, std::int64_t axis, bool exclusive, bool reverse) {
  const Call call{"cumulative_sum", {x}};
  const ir::Type type = call.type(0);
  const Tensor result = call.add(Op::cumulative_sum, {call.widen(call.tensor(0))},
                                 ir::ScanAttr{call.axis(axis, type.rank()), exclusive, reverse});
  return call.convert(result, type.dtype);
}

Tensor matmul(const Arg& a, const Arg& b, bool transpose_a, bool transpose_b, std::optional<DType> result) {
  const Call call{"matmul", {a, b}};
  const std::vector<ir::Type> operands = {call.type(0), call.type(1)};
  const ir::MatmulAttr attr{transpose_a, transpose_b};
  ir::Type type = infer(call, Op::matmul, operands, attr);
  type.dtype = result.value_or(type.dtype);
  return call.add(Op::matmul, {call.tensor(0), call.tensor(1)}, attr, &type);
}

Tensor contraction(const Arg& a, const Arg& b, ContractionDims dims, std::optional<DType> result) {
  const Call call{"contraction", {a, b}};
  const std::vector<ir::Type> operands = {call.type(0), call.type(1)};
  for (Axes* axes : {&dims.batch_a, &dims.contract_a}) {
    for (std::int64_t& axis : *axes) axis = call.axis(axis, operands[0].rank());
  }
  for (Axes* axes : {&dims.batch_b, &dims.contract_b}) {
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
