// Functions that move elements: reshapes, slices, concatenations, gathers.
// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "ir/builder/call.hpp"

namespace fuse {
inline namespace v0 {
namespace {

using detail::AxisList;
using detail::Builder;
using detail::Call;
using ir::Op;

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

Tensor sliced(const Call& call, const std::vector<SliceRange>& ranges) {
  const std::vector<Dim> dims = call.type(0).dims;
  ir::SliceAttr attr{std::vector<Dim>(dims.size(), Dim(0)), dims, AxisList(dims.size(), 1)};
  for (const SliceRange& range : ranges) {
    const auto along =
        static_cast<std::size_t>(call.axis(range.axis, static_cast<std::int64_t>(dims.size())));
    attr.starts[along] = range.start;
    attr.limits[along] = range.limit;
    attr.strides[along] = range.stride;
  }
  return call.add(Op::slice, {call.tensor(0)}, std::move(attr));
}

/// A call of a function that takes a list of tensors, at least one.
Call calling(std::string_view name, const std::vector<Tensor>& parts, const std::source_location& at) {
  if (parts.empty()) {
    throw Error({.code = ErrorCode::invalid_argument,
                 .message = "the list of tensors is empty",
                 .op = std::string(name),
                 .location = at,
                 .hint = "give one tensor or more"});
  }
  std::vector<Arg> args;
  for (const Tensor& part : parts) args.emplace_back(part, at);
  return {name, std::move(args)};
}

}  // namespace

Tensor broadcast_to(const Arg& x, std::vector<Dim> dims) {
  const Call call{"broadcast_to", {x}};
  const ir::Type type = call.type(0);
  const std::size_t rank = type.dims.size();
  bool fits = dims.size() >= rank;
  for (std::size_t i = 0; fits && i < rank; ++i) {
    const Dim& own = type.dims[rank - 1 - i];
    const Dim& extent = dims[dims.size() - 1 - i];
    fits = own.is(1) || ir::can_be_equal(own, extent) || call.is_one_or(own, extent);
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

Tensor squeeze(const Arg& x, const Axes& axes) {
  const Call call{"squeeze", {x}};
  const std::vector<Dim> dims = call.type(0).dims;
  AxisList gone = call.axes(axes.list());
  for (const std::int64_t axis : gone) {
    const Dim& extent = dims[static_cast<std::size_t>(axis)];
    if (!ir::can_be_equal(extent, 1)) {
      call.fail(ErrorCode::shape_mismatch,
                fmt::format("axis {} has extent {}, not 1", axis, extent.to_string()),
                "name axes of extent 1, or none for all of these");
    }
  }
  std::vector<Dim> kept;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const bool goes = gone.empty()
                          ? dims[i].is(1)
                          : std::binary_search(gone.begin(), gone.end(), static_cast<std::int64_t>(i));
    if (!goes) kept.push_back(dims[i]);
  }
  return call.reshape(call.tensor(0), std::move(kept));
}

Tensor unsqueeze(const Arg& x, const Axes& axes) {
  const Call call{"unsqueeze", {x}};
  std::vector<Dim> dims = call.type(0).dims;
  const auto rank = static_cast<std::int64_t>(dims.size() + axes.list().size());
  // Sorted, so that each axis is where the new dim stands in the end.
  for (const std::int64_t axis : call.axes(axes.list(), rank)) dims.insert(dims.begin() + axis, Dim(1));
  return call.reshape(call.tensor(0), std::move(dims));
}

Tensor flatten(const Arg& x, std::int64_t first, std::int64_t last) {
  const Call call{"flatten", {x}};
  const std::vector<Dim> dims = call.type(0).dims;
  if (dims.empty()) return call.reshape(call.tensor(0), {1});
  const auto rank = static_cast<std::int64_t>(dims.size());
  const std::int64_t begin = call.axis(first, rank), end = call.axis(last, rank) + 1;
  if (begin >= end) {
    call.fail(ErrorCode::invalid_argument, fmt::format("axis {} does not come before axis {}", first, last),
              "flatten(x, first, last) joins the dims from first to last");
  }
  std::vector<Dim> joined(dims.begin(), dims.begin() + begin);
  joined.push_back(product({dims.begin() + begin, dims.begin() + end}));
  joined.insert(joined.end(), dims.begin() + end, dims.end());
  return call.reshape(call.tensor(0), std::move(joined));
}

Tensor transpose(const Arg& x, std::vector<std::int64_t> permutation) {
  const Call call{"transpose", {x}};
  const std::int64_t rank = call.type(0).rank();
  for (std::int64_t& dim : permutation) dim = call.axis(dim, rank);
  return call.add(Op::transpose, {call.tensor(0)}, ir::DimsAttr{std::move(permutation)});
}

Tensor slice(const Arg& x, std::int64_t axis, const Dim& start, const Dim& limit, std::int64_t stride) {
  return sliced(Call{"slice", {x}}, {{.axis = axis, .start = start, .limit = limit, .stride = stride}});
}

Tensor slice(const Arg& x, const std::vector<SliceRange>& ranges) {
  const Call call{"slice", {x}};
  AxisList named;
  for (const SliceRange& range : ranges) named.push_back(range.axis);
  (void)call.axes(std::move(named));  // each at most once
  return ranges.empty() ? call.tensor(0) : sliced(call, ranges);
}

std::vector<Tensor> split(const Arg& x, const std::vector<Dim>& extents, std::int64_t axis) {
  const Call call{"split", {x}};
  const std::vector<Dim> dims = call.type(0).dims;
  const std::int64_t along = call.axis(axis, static_cast<std::int64_t>(dims.size()));
  const Dim whole = dims[static_cast<std::size_t>(along)];
  Dim total = 0;
  for (const Dim& extent : extents) total = total + extent;
  if (!ir::can_be_equal(total, whole)) {
    call.fail(ErrorCode::shape_mismatch,
              fmt::format("the parts have {} elements along axis {}, the operand {}", total.to_string(),
                          along, whole.to_string()),
              "the extents of the parts add up to the operand's");
  }
  // Slices need no more than that each part lies inside, so that elements behind the last part would be lost.
  if (total != whole) {
    call.builder.graph.assumptions.push_back({equal(total, whole), call.builder.locate(call.at)});
  }
  std::vector<Tensor> parts;
  Dim start = 0;
  for (const Dim& extent : extents) {
    const Dim limit = start + extent;
    parts.push_back(sliced(call, {{.axis = along, .start = start, .limit = limit}}));
    start = limit;
  }
  return parts;
}

Tensor reverse(const Arg& x, const Axes& axes) {
  const Call call{"reverse", {x}};
  if (axes.list().empty()) return call.tensor(0);
  return call.add(Op::reverse, {call.tensor(0)}, ir::DimsAttr{call.axes(axes.list())});
}

Tensor pad(const Arg& x, const Arg& value, std::vector<Dim> low, std::vector<Dim> high) {
  const Call call{"pad", {x, value}};
  const DType dtype = call.type(0).dtype;
  const Tensor filler = value.is_number() ? call.operand(1, dtype, dtype, {}) : call.tensor(1);
  return call.add(Op::pad, {call.tensor(0), filler}, ir::PadAttr{std::move(low), std::move(high)});
}

Tensor concat(const std::vector<Tensor>& parts, std::int64_t axis, std::source_location at) {
  const Call call = calling("concat", parts, at);
  return call.add(Op::concat, parts, ir::AxisAttr{call.axis(axis, call.type(0).rank())});
}

Tensor stack(const std::vector<Tensor>& parts, std::int64_t axis, std::source_location at) {
  const Call call = calling("stack", parts, at);
  const std::int64_t along = call.axis(axis, call.type(0).rank() + 1);
  std::vector<Dim> dims = call.type(0).dims;
  dims.insert(dims.begin() + along, Dim(1));
  std::vector<Tensor> rows;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::vector<Dim> own = call.type(i).dims;
    bool same = own.size() + 1 == dims.size();
    for (std::size_t k = 0; same && k < own.size(); ++k) {
      same = ir::can_be_equal(own[k], dims[k < static_cast<std::size_t>(along) ? k : k + 1]);
    }
    if (!same)
      call.fail(ErrorCode::shape_mismatch, "the shapes of the tensors differ",
                "stack takes tensors of one shape");
    rows.push_back(call.reshape(parts[i], dims));
  }
  return call.add(Op::concat, rows, ir::AxisAttr{along});
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

}  // namespace v0

namespace {
constexpr std::int64_t max_parts = 65536;
}  // namespace

std::vector<Tensor> detail::split_equally(const Arg& x, std::int64_t parts, std::int64_t axis) {
  const Call call{"split", {x}};
  const std::vector<Dim> dims = call.type(0).dims;
  const Dim whole = dims[static_cast<std::size_t>(call.axis(axis, static_cast<std::int64_t>(dims.size())))];
  if (parts < 1 || parts > max_parts) {
    call.fail(ErrorCode::invalid_argument, fmt::format("{} parts are asked for", parts),
              fmt::format("ask for 1 to {}; each is an op", max_parts));
  }
  if (!ir::can_be_equal(whole, whole / parts * parts)) {
    call.fail(ErrorCode::shape_mismatch,
              fmt::format("the extent {} is no multiple of {}", whole.to_string(), parts),
              "name the extents of the parts, as in split(x, {3, 2}, axis)");
  }
  const auto count = static_cast<std::size_t>(parts);
  return split(Arg(call.tensor(0), call.at), std::vector<Dim>(count, whole / parts), axis);
}

}  // namespace fuse
