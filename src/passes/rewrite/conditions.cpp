// SPDX-License-Identifier: Apache-2.0
#include "passes/rewrite/conditions.hpp"

#include <algorithm>
#include <cmath>

#include "eval/bounds/rounding.hpp"

namespace fuse::ir::algebra {
namespace {

using Axes = std::vector<std::int64_t>;

const Axes& axes(const Node& node) { return ir::attr<DimsAttr>(node).dims; }
std::size_t index(std::int64_t axis) { return static_cast<std::size_t>(axis); }
bool increases(const Axes& dims) {
  return std::adjacent_find(dims.begin(), dims.end(), std::greater_equal<>()) == dims.end();
}

/// Axes below `rank` that are not among `dims`.
Axes others(std::size_t rank, const Axes& dims) {
  Axes result;
  for (std::size_t i = 0; i < rank; ++i) {
    const auto axis = static_cast<std::int64_t>(i);
    if (std::find(dims.begin(), dims.end(), axis) == dims.end()) result.push_back(axis);
  }
  return result;
}

Axes mapped(const Axes& dims, const Axes& through) {
  Axes result;
  for (const std::int64_t dim : dims) result.push_back(through[index(dim)]);
  return result;
}

std::optional<Attr> if_increasing(Axes dims) {
  if (!increases(dims)) return std::nullopt;
  return DimsAttr{std::move(dims)};
}

double reciprocal(const Match& m) {
  double value = 1 / m.constant(0).real;
  runtime::reference::round_to(m.root().type.dtype, &value, 1);
  return value;
}

/// Significant bits of a type: for an integer, those of its greatest magnitude.
int bits(DType dtype) {
  switch (dtype) {
    case f64:
      return 53;
    case f32:
      return 24;
    case f16:
      return 11;
    case bf16:
      return 8;
    default:
      break;
  }
  if (dtype == boolean) return 1;
  return dtype == u8 ? 8 : static_cast<int>(8 * size_of(dtype)) - 1;
}

/// Every value of `from` is one of `to`.
bool holds(DType to, DType from) {
  if (to == from || from == boolean) return true;
  if (is_floating(from)) return to == f64 || (to == f32 && is_half(from));
  if (to == boolean) return false;
  if (is_integer(to)) return bits(to) >= bits(from) && (to != u8 || from == u8);
  return bits(to) >= bits(from);
}

Axes composed_dims(const Match& m) {
  const std::size_t rank = index(m.value(0).type.rank());
  Axes dims = axes(m.op(1));
  const Axes outer = mapped(axes(m.root()), others(rank, dims));
  dims.insert(dims.end(), outer.begin(), outer.end());
  std::sort(dims.begin(), dims.end());
  return dims;
}

}  // namespace

bool integers(const Match& m) { return is_integer(m.operand().dtype); }
bool floats(const Match& m) { return is_floating(m.operand().dtype); }
bool bools(const Match& m) { return m.operand().dtype == boolean; }
bool not_floats(const Match& m) { return !floats(m); }
bool is_signed(const Match& m) { return floats(m) || integer_range(m.operand().dtype).low < 0; }
bool integers_with_sign(const Match& m) { return integers(m) && is_signed(m); }
bool compares_integers(const Match& m) { return is_integer(m.graph[m.op(1).operands[0]].type.dtype); }
bool makes_bools(const Match& m) { return m.root().type.dtype == boolean; }

bool power_of_two(const Match& m) {
  if (!floats(m)) return false;
  int exponent = 0;
  const double value = m.constant(0).real;
  return std::isfinite(value) && std::fabs(std::frexp(value, &exponent)) == 0.5 && has_reciprocal(m);
}

bool has_reciprocal(const Match& m) {
  return floats(m) && m.constant(0).real != 0 && std::isfinite(reciprocal(m)) && reciprocal(m) != 0;
}

bool lossless_middle(const Match& m) {
  const DType from = m.value(0).type.dtype, middle = m.op(1).type.dtype, to = m.root().type.dtype;
  if (is_integer(from) && is_integer(middle) && is_integer(to) && size_of(to) <= size_of(middle)) return true;
  // A float becomes an integer by saturation, an integer a narrower one by wrapping.
  const bool alike = is_floating(from) == is_floating(middle);
  return holds(middle, from) && (alike || is_floating(to) || to == boolean || holds(to, from));
}

bool float_middle(const Match& m) {
  return is_floating(m.value(0).type.dtype) && is_floating(m.op(1).type.dtype) &&
         is_floating(m.root().type.dtype);
}

bool factors_used_once(const Match& m) { return floats(m) && m.only_use(1) && m.only_use(2); }

bool same_type(const Match& m) { return m.value(0).type == m.root().type; }
bool same_type_y(const Match& m) { return m.value(1).type == m.root().type; }

bool whole_slice(const Match& m) {
  const auto& slice = ir::attr<SliceAttr>(m.root());
  return same_type(m) &&
         std::all_of(slice.starts.begin(), slice.starts.end(), [](const Dim& d) { return d.is(0); }) &&
         std::all_of(slice.strides.begin(), slice.strides.end(), [](std::int64_t s) { return s == 1; });
}

bool no_padding(const Match& m) {
  const std::vector<Dim> counts = dims_of(m.root().attr);
  return std::all_of(counts.begin(), counts.end(), [](const Dim& count) { return count.is(0); });
}

bool reverses_nothing(const Match& m) {
  const Axes& dims = axes(m.root());
  return std::all_of(dims.begin(), dims.end(),
                     [&](std::int64_t d) { return m.operand().dims[index(d)].is(1); });
}

bool keeps_order(const Match& m) { return increases(axes(m.root())); }

bool unit_dims(const Match& m) { return reverses_nothing(m); }
bool unit_dims_of_integers(const Match& m) { return unit_dims(m) && integers(m); }
bool unit_dims_of_floats(const Match& m) { return unit_dims(m) && floats(m); }

std::optional<Attr> composed_transpose(const Match& m) {
  return DimsAttr{mapped(axes(m.root()), axes(m.op(1)))};
}

std::optional<Attr> composed_slice(const Match& m) {
  const auto &outer = ir::attr<SliceAttr>(m.root()), &inner = ir::attr<SliceAttr>(m.op(1));
  SliceAttr result;
  for (std::size_t i = 0; i < outer.starts.size(); ++i) {
    const std::int64_t step = inner.strides[i];
    std::int64_t stride = 0;
    if (__builtin_mul_overflow(step, outer.strides[i], &stride)) return std::nullopt;
    const Dim start = inner.starts[i] + outer.starts[i] * step;
    const Dim& count = m.root().type.dims[i];
    Dim limit = inner.starts[i] + outer.limits[i];
    if (step != 1) {
      if (!count.is_constant()) return std::nullopt;
      limit = count.is(0) ? start : start + (count - 1) * stride + 1;
    }
    const bool fits =
        proven_le(0, start) && proven_le(start, limit) && proven_le(limit, m.value(0).type.dims[i]);
    if (!fits || !(ceil_div(limit - start, stride) == count)) return std::nullopt;
    result.starts.push_back(start);
    result.limits.push_back(limit);
    result.strides.push_back(stride);
  }
  return result;
}

std::optional<Attr> composed_reverse(const Match& m) {
  Axes dims;
  std::set_symmetric_difference(axes(m.root()).begin(), axes(m.root()).end(), axes(m.op(1)).begin(),
                                axes(m.op(1)).end(), std::back_inserter(dims));
  return DimsAttr{std::move(dims)};
}

std::optional<Attr> composed_pad(const Match& m) {
  PadAttr result = ir::attr<PadAttr>(m.root());
  const auto& inner = ir::attr<PadAttr>(m.op(1));
  for (std::size_t i = 0; i < result.low.size(); ++i) {
    result.low[i] = result.low[i] + inner.low[i];
    result.high[i] = result.high[i] + inner.high[i];
  }
  return result;
}

std::optional<Attr> composed_broadcast(const Match& m) {
  return DimsAttr{mapped(axes(m.op(1)), axes(m.root()))};
}

std::optional<Attr> transposed_broadcast(const Match& m) {
  Axes position(axes(m.root()).size());
  for (std::size_t i = 0; i < position.size(); ++i)
    position[index(axes(m.root())[i])] = static_cast<std::int64_t>(i);
  return if_increasing(mapped(axes(m.op(1)), position));
}

std::optional<Attr> sliced_broadcast(const Match& m) {
  const Axes& dims = axes(m.op(1));
  const std::vector<Dim>& from = m.value(0).type.dims;
  const auto& slice = ir::attr<SliceAttr>(m.root());
  for (std::size_t i = 0; i < dims.size(); ++i) {
    const std::size_t d = index(dims[i]);
    const bool whole =
        slice.starts[d].is(0) && slice.strides[d] == 1 && slice.limits[d] == m.op(1).type.dims[d];
    if (!whole && !from[i].is(1)) return std::nullopt;
  }
  return m.op(1).attr;
}

std::optional<Attr> reshaped_broadcast(const Match& m) {
  const std::vector<Dim>&from = m.value(0).type.dims, &to = m.op(1).type.dims;
  Axes dims;
  for (std::size_t i = 0; i < to.size(); ++i) {
    if (dims.size() < from.size() && from[dims.size()] == to[i]) {
      dims.push_back(axes(m.root())[i]);
    } else if (!to[i].is(1)) {
      return std::nullopt;
    }
  }
  if (dims.size() != from.size()) return std::nullopt;
  return DimsAttr{std::move(dims)};
}

std::optional<Attr> composed_reduction(const Match& m) {
  if (!m.only_use(1)) return std::nullopt;
  return DimsAttr{composed_dims(m)};
}

std::optional<Attr> permuted_reduction(const Match& m) {
  const Axes& permutation = axes(m.op(1));
  if (!increases(mapped(others(permutation.size(), axes(m.root())), permutation))) return std::nullopt;
  Axes dims = mapped(axes(m.root()), permutation);
  std::sort(dims.begin(), dims.end());
  return DimsAttr{std::move(dims)};
}

std::optional<Attr> transposed_reduction(const Match& m) {
  if (!increases(mapped(axes(m.root()), axes(m.op(1))))) return std::nullopt;
  return permuted_reduction(m);
}

std::optional<Attr> same_reduction(const Match& m) { return m.root().attr; }

}  // namespace fuse::ir::algebra
