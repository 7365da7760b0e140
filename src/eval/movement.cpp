// Ops that move or repeat elements: each result element is one operand element.
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "eval/eval_step.hpp"

namespace fuse::runtime::reference {
namespace {

using Extents = std::vector<std::int64_t>;

std::int64_t product(const Extents& extents, std::size_t from, std::size_t to) {
  std::int64_t result = 1;
  for (std::size_t i = from; i < to; ++i) result *= extents[i];
  return result;
}

Extents row_major_strides(const Extents& shape) {
  Extents strides(shape.size(), 1);
  for (std::size_t i = shape.size(); i-- > 1;) strides[i - 1] = strides[i] * shape[i];
  return strides;
}

/// What broadcast, transpose and slice have in common: result element c is operand element
/// first + sum of c[i] * strides[i].
struct View {
  std::int64_t first = 0;
  Extents shape{}, strides{};
};

/// The same elements in the same order with as few dims as possible, so that the inner loop is long.
View merge_dims(const View& view) {
  View merged{.first = view.first};
  for (std::size_t i = 0; i < view.shape.size(); ++i) {
    if (view.shape[i] == 1) continue;
    if (!merged.shape.empty() && merged.strides.back() == view.shape[i] * view.strides[i]) {
      merged.shape.back() *= view.shape[i];
      merged.strides.back() = view.strides[i];
    } else {
      merged.shape.push_back(view.shape[i]);
      merged.strides.push_back(view.strides[i]);
    }
  }
  if (merged.shape.empty()) {
    merged.shape.push_back(1);
    merged.strides.push_back(1);
  }
  return merged;
}

/// `out` is not empty.
template <class T>
void copy_view(const View& whole, const T* in, T* out) {
  const View view = merge_dims(whole);
  const std::size_t outer = view.shape.size() - 1;
  const std::int64_t extent = view.shape.back(), stride = view.strides.back();
  Extents at(outer, 0);
  std::int64_t from = view.first;
  while (true) {
    if (stride == 1) {
      std::copy_n(in + from, extent, out);
    } else if (stride == 0) {
      std::fill_n(out, extent, in[from]);
    } else {
      for (std::int64_t i = 0; i < extent; ++i) out[i] = in[from + i * stride];
    }
    out += extent;
    std::size_t d = outer;
    for (;; from -= view.strides[d] * (view.shape[d] - 1), at[d] = 0) {
      if (d-- == 0) return;
      if (++at[d] < view.shape[d]) break;
    }
    from += view.strides[d];
  }
}

View broadcast_view(const Step& step) {
  const Extents& operand = step.operand(0).shape();
  const Extents own = row_major_strides(operand);
  const Extents& dims = ir::attr<ir::DimsAttr>(step.node).dims;
  View view{.shape = step.shape, .strides = Extents(step.shape.size(), 0)};
  for (std::size_t i = 0; i < operand.size(); ++i) {
    const auto d = static_cast<std::size_t>(dims[i]);
    if (operand[i] == 1) continue;
    if (operand[i] != step.shape[d]) {
      step.fail(ErrorCode::shape_mismatch,
                "an extent of the operand is neither 1 nor the result's for these dims");
    }
    view.strides[d] = own[i];
  }
  return view;
}

/// An extent of the operand is the result's, or 1 and repeats.
View expand_view(const Step& step) {
  const Extents& operand = step.operand(0).shape();
  View view{.shape = step.shape, .strides = row_major_strides(operand)};
  for (std::size_t i = 0; i < operand.size(); ++i) {
    if (operand[i] == step.shape[i]) continue;
    if (operand[i] != 1)
      step.fail(ErrorCode::shape_mismatch, "an extent of the operand is neither 1 nor the result's");
    view.strides[i] = 0;
  }
  return view;
}

View transpose_view(const Step& step) {
  const Extents& operand = step.operand(0).shape();
  const Extents own = row_major_strides(operand);
  View view{.shape = step.shape, .strides = Extents(step.shape.size())};
  for (std::size_t i = 0; i < step.shape.size(); ++i) {
    const auto from = static_cast<std::size_t>(ir::attr<ir::DimsAttr>(step.node).dims[i]);
    if (operand[from] != step.shape[i])
      step.fail(ErrorCode::shape_mismatch, "the extents are not the operand's");
    view.strides[i] = own[from];
  }
  return view;
}

View slice_view(const Step& step) {
  const auto& slice = ir::attr<ir::SliceAttr>(step.node);
  const Extents& operand = step.operand(0).shape();
  const Extents own = row_major_strides(operand);
  View view{.shape = step.shape, .strides = Extents(step.shape.size())};
  for (std::size_t i = 0; i < step.shape.size(); ++i) {
    const std::int64_t start = step.value_of(slice.starts[i]);
    const std::int64_t limit = step.value_of(slice.limits[i]);
    const std::int64_t stride = slice.strides[i];
    if (start < 0 || limit > operand[i] || stride < 1) {
      step.fail(ErrorCode::invalid_extent,
                "the slice [" + std::to_string(start) + ", " + std::to_string(limit) + ") of axis " +
                    std::to_string(i) + " is outside of its extent " + std::to_string(operand[i]),
                "start and limit must lie in the operand for every value of the dims");
    }
    const std::int64_t count = limit <= start ? 0 : (limit - start - 1) / stride + 1;
    if (count != step.shape[i]) step.fail(ErrorCode::shape_mismatch, "the slice has not the result's extent");
    view.first += start * own[i];
    view.strides[i] = stride * own[i];
  }
  return view;
}

View reverse_view(const Step& step) {
  const std::vector<std::int64_t>& dims = ir::attr<ir::DimsAttr>(step.node).dims;
  View view{.shape = step.shape, .strides = row_major_strides(step.shape)};
  for (const std::int64_t dim : dims) {
    std::int64_t& stride = view.strides[static_cast<std::size_t>(dim)];
    view.first += (step.shape[static_cast<std::size_t>(dim)] - 1) * stride;
    stride = -stride;
  }
  return view;
}

/// Operands from `first` on: a start for each dim, clamped so that `sizes` lie inside of operand 0.
Extents clamped_starts(const Step& step, std::size_t first, const Extents& sizes) {
  Extents starts;
  for (std::size_t i = 0; i < sizes.size(); ++i) {
    const std::int64_t last = step.operand(0).shape()[i] - sizes[i];
    if (last < 0)
      step.fail(ErrorCode::invalid_extent, "the slice does not fit into the operand for these dims");
    starts.push_back(std::clamp<std::int64_t>(step.operand(first + i).integer()[0], 0, last));
  }
  return starts;
}

View dynamic_slice_view(const Step& step) {
  View view{.shape = step.shape, .strides = row_major_strides(step.operand(0).shape())};
  const Extents starts = clamped_starts(step, 1, step.shape);
  for (std::size_t i = 0; i < starts.size(); ++i) view.first += starts[i] * view.strides[i];
  return view;
}

/// Writes the box `in` of extents `box` into `out` of extents `shape`, from `starts` on.
template <class T>
void put_box(const T* in, const Extents& box, T* out, const Extents& shape, const Extents& starts) {
  const Extents strides = row_major_strides(shape);
  const std::size_t rank = box.size();
  const std::int64_t row = rank == 0 ? 1 : box[rank - 1];
  const std::int64_t rows = rank == 0 ? 1 : product(box, 0, rank - 1);
  for (std::int64_t r = 0; r < rows && row > 0; ++r) {
    std::int64_t to = rank == 0 ? 0 : starts[rank - 1], rest = r;
    for (std::size_t d = rank; d-- > 1;) {
      to += (starts[d - 1] + rest % box[d - 1]) * strides[d - 1];
      rest /= box[d - 1];
    }
    std::copy_n(in + r * row, row, out + to);
  }
}

template <class T>
void pad(const Step& step, std::span<T> out) {
  const auto& attribute = ir::attr<ir::PadAttr>(step.node);
  Extents starts;
  for (std::size_t i = 0; i < step.shape.size(); ++i) {
    const std::int64_t low = step.value_of(attribute.low[i]), high = step.value_of(attribute.high[i]);
    if (low < 0 || high < 0 || low + step.operand(0).shape()[i] + high != step.shape[i]) {
      step.fail(ErrorCode::shape_mismatch, "the padding does not make the result's extents for these dims");
    }
    starts.push_back(low);
  }
  std::fill(out.begin(), out.end(), step.operand(1).elements<T>()[0]);
  put_box(step.operand(0).elements<T>().data(), step.operand(0).shape(), out.data(), step.shape, starts);
}

template <class T>
void update_slice(const Step& step, std::span<T> out) {
  const std::span<const T> x = step.operand(0).elements<T>();
  std::copy(x.begin(), x.end(), out.begin());
  const Extents& box = step.operand(1).shape();
  put_box(step.operand(1).elements<T>().data(), box, out.data(), step.shape, clamped_starts(step, 2, box));
}

template <class T>
void concatenate(const Step& step, T* out) {
  const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(step.node).axis);
  const std::size_t rank = step.shape.size();
  const std::int64_t outer = product(step.shape, 0, axis), inner = product(step.shape, axis + 1, rank);
  const std::int64_t row = inner * step.shape[axis];
  std::int64_t end = 0;
  for (const ReferenceTensor* part : step.operands) {
    Extents expected = step.shape;
    expected[axis] = part->shape()[axis];
    if (part->shape() != expected || (end += expected[axis]) > step.shape[axis]) {
      step.fail(ErrorCode::shape_mismatch, "the parts do not make up the result for these dims");
    }
    const std::int64_t size = expected[axis] * inner;
    const T* from = part->elements<T>().data();
    for (std::int64_t i = 0; i < outer && size > 0; ++i) {
      std::copy_n(from + i * size, size, out + i * row + end * inner - size);
    }
  }
  if (end != step.shape[axis]) {
    step.fail(ErrorCode::shape_mismatch, "the parts do not make up the result for these dims");
  }
}

template <class T>
void gather(const Step& step, T* out, std::size_t count) {
  const ReferenceTensor& x = step.operand(0);
  const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(step.node).axis);
  Extents expected = x.shape();
  const Extents& positions = step.operand(1).shape();
  expected.erase(expected.begin() + static_cast<std::ptrdiff_t>(axis));
  expected.insert(expected.begin() + static_cast<std::ptrdiff_t>(axis), positions.begin(), positions.end());
  if (expected != step.shape) step.fail(ErrorCode::shape_mismatch, "the result has not the gathered shape");
  if (count == 0) return;
  const std::int64_t extent = x.shape()[axis];
  if (extent == 0) {
    step.fail(ErrorCode::invalid_extent, "elements are gathered from an axis of extent 0");
  }
  const std::int64_t outer = product(x.shape(), 0, axis);
  const std::int64_t inner = product(x.shape(), axis + 1, x.shape().size());
  const T* from = x.elements<T>().data();
  for (std::int64_t i = 0; i < outer; ++i) {
    for (const std::int64_t index : step.operand(1).integer()) {
      const std::int64_t row = std::clamp<std::int64_t>(index, 0, extent - 1);
      out = std::copy_n(from + (i * extent + row) * inner, inner, out);
    }
  }
}

ReferenceTensor reshape(const Step& step) {
  const ReferenceTensor& x = step.operand(0);
  const auto count = checked_element_count(step.shape, sizeof(double));
  if (!count || static_cast<std::size_t>(*count) != x.element_count()) {
    step.fail(ErrorCode::shape_mismatch, "the shapes have different numbers of elements for these dims");
  }
  if (step.dying) return ReferenceTensor(step.dtype(), step.shape, std::move(*step.dying));
  return ReferenceTensor(step.dtype(), step.shape, ReferenceTensor(x));
}

}  // namespace

ReferenceTensor evaluate_movement(const Step& step) {
  using ir::Relation;
  const Relation relation = info(step.node.op).relation;
  if (relation == Relation::reshape) return reshape(step);
  ReferenceTensor result = step.make();
  step.with_storage(step.dtype(), [&]<class T>() {
    const std::span<T> out = result.elements<T>();
    const auto copy = [&](const View& view) {
      if (!out.empty()) copy_view(view, step.operand(0).elements<T>().data(), out.data());
    };
    switch (relation) {
      case Relation::broadcast:
        return copy(broadcast_view(step));
      case Relation::expand:
        return copy(expand_view(step));
      case Relation::permute:
        return copy(transpose_view(step));
      case Relation::slice:
        return copy(slice_view(step));
      case Relation::reverse:
        return copy(reverse_view(step));
      case Relation::pad:
        return pad(step, out);
      case Relation::dynamic_slice:
        return copy(dynamic_slice_view(step));
      case Relation::update:
        return update_slice(step, out);
      case Relation::concat:
        return concatenate(step, out.data());
      case Relation::gather:
        return gather(step, out.data(), out.size());
      default:
        step.fail(ErrorCode::internal, "the op does not move elements");
    }
  });
  return result;
}

}  // namespace fuse::runtime::reference
