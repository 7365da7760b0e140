// Call: one call of a function of the builder API while it becomes nodes.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "ir/builder/builder.hpp"
#include "ir/dims/disproof.hpp"

namespace fuse::detail {

using AxisList = std::vector<std::int64_t>;
using ir::Op;

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

  /// The axes counted from the start, sorted, each named once.
  AxisList axes(AxisList axes, std::int64_t rank) const {
    for (std::int64_t& each : axes) each = axis(each, rank);
    std::sort(axes.begin(), axes.end());
    if (const auto twice = std::adjacent_find(axes.begin(), axes.end()); twice != axes.end()) {
      fail(ErrorCode::invalid_argument, fmt::format("axis {} is named twice", *twice),
           "name each axis once; a negative axis counts from the end");
    }
    return axes;
  }
  AxisList axes(AxisList of_first) const { return axes(std::move(of_first), type(0).rank()); }

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

  /// Whether the user said that `own` is 1 or `whole`.
  bool is_one_or(const Dim& own, const Dim& whole) const {
    return std::any_of(
        builder.graph.assumptions.begin(), builder.graph.assumptions.end(),
        [&](const ir::Assumption& assumption) { return assumption.relation == one_or(own, whole); });
  }

  /// Repeats x to a shape that it is known to broadcast to. What is 1 or more by the dims is expanded first.
  Tensor spread(const Tensor& x, const std::vector<Dim>& dims) const {
    const ir::Type type{Builder::type(x).dtype, dims};
    ir::Type expanded = Builder::type(x);
    const std::size_t added = dims.size() - expanded.dims.size();
    for (std::size_t i = 0; i < expanded.dims.size(); ++i) {
      Dim& extent = expanded.dims[i];
      if (extent != dims[added + i] && is_one_or(extent, dims[added + i])) extent = dims[added + i];
    }
    const Tensor from = expanded == Builder::type(x) ? x : add(Op::expand, {x}, {}, &expanded);
    if (type == expanded) return from;
    ir::DimsAttr attr;
    for (std::size_t i = added; i < dims.size(); ++i) attr.dims.push_back(static_cast<std::int64_t>(i));
    return add(Op::broadcast_in_dim, {from}, std::move(attr), &type);
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

  /// The shape that all operands broadcast to: aligned at the right, extents equal or 1, or one of the two by
  /// the dims.
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
        if (!extent.is(1) && !is_one_or(extent, own)) {
          if (is_one_or(own, extent)) continue;
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

}  // namespace fuse::detail
