// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/makers.hpp"

#include <algorithm>
#include <fuse/fuse.hpp>
#include <numeric>

#include "fuzz/grow/custom_kernel.hpp"

namespace fuse::fuzz {
namespace {

std::vector<std::int64_t> permutation(Random& random, std::int64_t rank) {
  std::vector<std::int64_t> order(static_cast<std::size_t>(rank));
  std::iota(order.begin(), order.end(), 0);
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

std::int64_t axis_of(Random& random, const Tensor& x) { return random.between(0, x.rank() - 1); }

/// Extents with the same product: neighbours merged, a factor split off, ones added and removed.
std::vector<Dim> reshaped(Random& random, std::vector<Dim> dims) {
  const std::size_t edits = 1 + random.below(3);
  for (std::size_t edit = 0; edit < edits; ++edit) {
    const double weights[] = {3, 3, 1, 1};
    switch (random.weighted(weights)) {
      case 0:
        if (dims.size() >= 2) {
          const std::size_t at = random.below(dims.size() - 1);
          dims[at] = dims[at] * dims[at + 1];
          dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(at) + 1);
        }
        break;
      case 1:
        if (!dims.empty() && dims.size() < 8) {
          const std::size_t at = random.below(dims.size());
          Dim factor = random.between(2, 8);
          // A product of symbols splits by one of them.
          const std::vector<Dim> symbols = dims[at].symbols();
          if (!symbols.empty() && random.chance(0.6)) factor = random.pick(symbols);
          if (!proven_divisible(dims[at], factor) || (!factor.is_constant() && factor.min() < 1)) break;
          const Dim rest = dims[at] / factor;
          dims[at] = rest;
          dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(at + random.below(2)), factor);
        }
        break;
      case 2:
        if (dims.size() < 8)
          dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(random.below(dims.size() + 1)), 1);
        break;
      default:
        if (const auto one = std::find_if(dims.begin(), dims.end(), [](const Dim& dim) { return dim.is(1); });
            one != dims.end()) {
          dims.erase(one);
        }
    }
  }
  return dims;
}

}  // namespace

void Maker::make(ir::Op op, DType dtype) {
  switch (op) {
#define FUSE_ELEMENTWISE(name, ...) \
  case ir::Op::name:                \
    return elementwise(op, dtype);
#define FUSE_REDUCTION(name, ...) \
  case ir::Op::name:              \
    return reduction(op, dtype);
#define FUSE_OP(name, ...) \
  case ir::Op::name:       \
    return name(dtype);
#include <fuse/ops.def>
  }
}

void Maker::elementwise(ir::Op op, DType dtype) {
  std::vector<Tensor> operands = {g.operand(dtype)};
  const std::vector<Dim> dims = operands[0].dims();
  for (int i = 1; i < ir::info(op).arity; ++i) {
    operands.push_back(g.random.chance(0.06) ? operands[0] : g.of_type(dtype, dims));
  }
  if (g.random.chance(0.3)) std::swap(operands.front(), operands.back());
  if (tamed) {
    for (Tensor& operand : operands) operand = g.tame(operand);
  }
  g.add(op, operands);
}

void Maker::reduction(ir::Op op, DType dtype) {
  Tensor x = g.operand(dtype, 1);
  if (tamed) x = g.tame(x);
  std::vector<std::int64_t> dims;
  const bool one = ir::info(op).identity == ir::Identity::none;
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    if (!one && g.random.chance(0.5)) dims.push_back(d);
  }
  if (dims.empty()) dims = {g.random.chance(0.5) ? x.rank() - 1 : axis_of(g.random, x)};
  if (one && !proven_le(1, x.dim(dims[0]))) return;  // which run time would refuse
  g.add(op, {x}, ir::DimsAttr{dims});
}

void Maker::input(DType dtype) { g.input(dtype, g.shape()); }
void Maker::parameter(DType dtype) { g.input(dtype, g.shape(), true); }
void Maker::constant(DType dtype) {
  g.constant(dtype, g.random.chance(0.5) ? std::vector<Dim>{} : g.shape());
}

void Maker::iota(DType dtype) {
  std::vector<Dim> dims = g.shape(1);
  const std::int64_t axis = g.random.between(0, static_cast<std::int64_t>(dims.size()) - 1);
  g.add(ir::Op::iota, {}, ir::AxisAttr{axis}, dtype, std::move(dims));
}

void Maker::dim_size(DType dtype) { g.add(ir::Op::dim_size, {}, ir::DimAttr{g.extent()}, dtype, {}); }

void Maker::select(DType dtype) {
  const Tensor a = g.operand(dtype);
  const std::vector<Dim> dims = a.dims();
  const Tensor condition = g.of_type(boolean, dims);
  const Tensor b = g.of_type(dtype, dims);
  g.add(ir::Op::select, {condition, a, b});
}

void Maker::convert(DType dtype) {
  const auto any = [&](const ir::Type& type) { return g.fits(type.dims); };
  const auto found = g.earlier(any);
  const Tensor x = found ? *found : g.input(f32, g.shape());
  g.add(ir::Op::convert, {x}, ir::NoAttr{}, dtype, x.dims());
}

void Maker::broadcast_in_dim(DType dtype) {
  const Tensor x = g.operand(dtype);
  std::vector<Dim> dims;
  std::vector<std::int64_t> positions;
  for (const Dim& dim : x.dims()) {
    while (dims.size() < 8 && g.random.chance(0.3)) dims.push_back(g.extent());
    positions.push_back(static_cast<std::int64_t>(dims.size()));
    dims.push_back(dim.is(1) && g.random.chance(0.5) ? g.extent() : dim);
  }
  while (dims.size() < 8 && g.random.chance(0.3)) dims.push_back(g.extent());
  g.broadcast(x, dims, positions);
}

void Maker::expand(DType dtype) {
  const Tensor like = g.operand(dtype);
  const std::vector<Dim> whole = like.dims();
  std::vector<Dim> dims = whole;
  for (Dim& dim : dims) {
    if (g.random.chance(0.2)) {
      dim = 1;
    } else if (!dim.is_constant() && g.random.chance(0.9)) {
      dim = g.one_or(dim).value_or(dim);
    }
  }
  const Tensor x = dims == whole ? like : g.of_type(dtype, dims);
  g.add(ir::Op::expand, {x}, ir::NoAttr{}, dtype, whole);
}

void Maker::reshape(DType dtype) {
  const Tensor x = g.operand(dtype);
  g.add(ir::Op::reshape, {x}, ir::NoAttr{}, dtype, reshaped(g.random, x.dims()));
}

void Maker::transpose(DType dtype) {
  const Tensor x = g.operand(dtype, 2);
  g.add(ir::Op::transpose, {x}, ir::DimsAttr{permutation(g.random, x.rank())});
}

void Maker::slice(DType dtype) {
  const Tensor x = g.operand(dtype, 1);
  ir::SliceAttr attr;
  for (const Dim& dim : x.dims()) {
    const std::int64_t least = dim.min(), room = std::min<std::int64_t>(least, 64);
    Dim start = 0, limit = dim;
    if (g.random.chance(0.6)) {
      const std::int64_t cut = g.random.between(0, room);
      start = cut;
      const std::int64_t other = g.random.between(0, room - cut);
      limit = g.random.chance(0.5) ? dim - other : Dim(cut + g.random.between(0, room - cut));
      if (g.random.chance(0.2))
        start = limit - g.random.between(0, room - cut - (limit.is_constant() ? 0 : other));
      if (!proven_le(0, start) || !proven_le(start, limit)) start = 0;
    }
    attr.starts.push_back(start);
    attr.limits.push_back(limit);
    attr.strides.push_back(g.random.chance(0.7) ? 1 : g.random.between(1, 5));
  }
  g.add(ir::Op::slice, {x}, attr);
}

void Maker::concat(DType dtype) {
  const Tensor first = g.operand(dtype, 1);
  const std::int64_t axis = axis_of(g.random, first);
  std::vector<Tensor> parts = {first};
  const std::size_t more = g.random.chance(0.05) ? 12 + g.random.below(10) : g.random.below(4);
  for (std::size_t i = 0; i < more; ++i) {
    std::vector<Dim> dims = first.dims();
    if (g.random.chance(0.5)) dims[static_cast<std::size_t>(axis)] = g.random.between(0, 4);
    parts.push_back(g.of_type(dtype, dims));
  }
  std::swap(parts.front(), parts.back());
  g.add(ir::Op::concat, parts, ir::AxisAttr{axis});
}

void Maker::gather(DType dtype) {
  const Tensor x = g.operand(dtype, 1);
  const std::int64_t axis = axis_of(g.random, x);
  if (!proven_le(1, x.dim(axis))) return;
  const Tensor indices = g.operand(g.random.chance(0.5) ? i32 : i64);
  g.add(ir::Op::gather, {x, indices}, ir::AxisAttr{axis});
}

void Maker::matmul(DType dtype) {
  const Tensor a = g.operand(dtype, 2);
  const std::vector<Dim> left = a.dims();
  const bool transpose_a = g.random.chance(0.3), transpose_b = g.random.chance(0.4);
  const std::size_t batch = left.size() - 2;
  const Dim inner = left[batch + (transpose_a ? 0 : 1)];
  std::vector<Dim> right(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(batch));
  const Dim columns = g.random.chance(0.3) ? inner : g.extent();
  right.push_back(transpose_b ? columns : inner);
  right.push_back(transpose_b ? inner : columns);
  if (!g.fits(right)) return;
  // Several of one operand and of weights: what merge_gemms makes one of.
  const bool several = g.random.chance(0.4);
  const Tensor b = several ? g.input(dtype, right, true) : g.of_type(dtype, right);
  const DType result = is_half(dtype) && g.random.chance(0.4) ? f32 : dtype;
  std::vector<Dim> dims(left.begin(), left.begin() + static_cast<std::ptrdiff_t>(batch));
  dims.push_back(left[batch + (transpose_a ? 1 : 0)]);
  dims.push_back(columns);
  const ir::MatmulAttr flags{transpose_a, transpose_b};
  std::vector<Tensor> parts = {g.add(ir::Op::matmul, {a, b}, flags, result, dims)};
  if (!several) return;
  for (std::int64_t i = g.random.between(1, 3); i > 0; --i) {
    parts.push_back(g.add(ir::Op::matmul, {a, g.input(dtype, right, true)}, flags, result, dims));
  }
  g.add(ir::Op::concat, parts, ir::AxisAttr{static_cast<std::int64_t>(batch)});
}

void Maker::reverse(DType dtype) {
  const Tensor x = g.operand(dtype);
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    if (g.random.chance(0.5)) dims.push_back(d);
  }
  g.add(ir::Op::reverse, {x}, ir::DimsAttr{dims});
}

void Maker::pad(DType dtype) {
  const Tensor x = g.operand(dtype);
  ir::PadAttr attr;
  const auto count = [&]() -> Dim {
    if (g.random.chance(0.5)) return 0;
    return g.random.chance(0.1) ? g.extent() : Dim(g.random.between(0, 4));
  };
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    attr.low.push_back(count());
    attr.high.push_back(count());
  }
  g.add(ir::Op::pad, {x, g.of_type(dtype, {})}, attr);
}

/// Part of each extent: what proves to fit for all values of the symbols.
std::vector<Dim> Maker::parts_of(const std::vector<Dim>& dims) {
  std::vector<Dim> parts;
  for (const Dim& dim : dims) {
    const std::int64_t room = std::min<std::int64_t>(dim.min(), 64);
    const double weights[] = {2, 1, 3};
    const std::size_t kind = g.random.weighted(weights);
    parts.push_back(kind == 0   ? dim
                    : kind == 1 ? dim - g.random.between(0, room)
                                : Dim(g.random.between(0, room)));
  }
  return parts;
}

std::vector<Tensor> Maker::starts(std::int64_t rank) {
  const DType dtype = g.random.chance(0.5) ? i32 : i64;
  std::vector<Tensor> starts;
  for (std::int64_t d = 0; d < rank; ++d) starts.push_back(g.of_type(dtype, {}));
  return starts;
}

void Maker::dynamic_slice(DType dtype) {
  const Tensor x = g.operand(dtype);
  std::vector<Tensor> operands = starts(x.rank());
  operands.insert(operands.begin(), x);
  g.add(ir::Op::dynamic_slice, operands, ir::SizesAttr{parts_of(x.dims())});
}

void Maker::dynamic_update_slice(DType dtype) {
  const Tensor x = g.operand(dtype);
  const Tensor update = g.of_type(dtype, parts_of(x.dims()));
  std::vector<Tensor> operands = starts(x.rank());
  operands.insert(operands.begin(), {x, update});
  g.add(ir::Op::dynamic_update_slice, operands);
}

void Maker::cumulative_sum(DType dtype) {
  Tensor x = g.operand(dtype, 1);
  if (tamed) x = g.tame(x);
  g.add(ir::Op::cumulative_sum, {x},
        ir::ScanAttr{axis_of(g.random, x), g.random.chance(0.4), g.random.chance(0.4)});
}

void Maker::contraction(DType dtype) {
  const Tensor a = g.operand(dtype);
  // The second operand's dims: the shared ones and a few of its own, in any order.
  ir::ContractionAttr attr;
  struct Shared {
    Dim extent;
    std::int64_t of_a = -1;
    bool batch = false;
  };
  std::vector<Shared> dims;
  for (std::int64_t d = 0; d < a.rank(); ++d) {
    const double weights[] = {1, 2, 2};
    const std::size_t role = g.random.weighted(weights);
    if (role != 2) dims.push_back({a.dim(d), d, role == 0});
  }
  for (std::size_t own = g.random.below(3); own > 0 && dims.size() < 8; --own) dims.push_back({g.extent()});
  for (std::size_t i = dims.size(); i > 1; --i) std::swap(dims[i - 1], dims[g.random.below(i)]);
  std::vector<Dim> right, result, free;
  std::vector<bool> used(static_cast<std::size_t>(a.rank()));
  for (std::size_t i = 0; i < dims.size(); ++i) {
    right.push_back(dims[i].extent);
    const auto at = static_cast<std::int64_t>(i);
    if (dims[i].of_a < 0) {
      free.push_back(dims[i].extent);
      continue;
    }
    used[static_cast<std::size_t>(dims[i].of_a)] = true;
    (dims[i].batch ? attr.batch_a : attr.contract_a).push_back(dims[i].of_a);
    (dims[i].batch ? attr.batch_b : attr.contract_b).push_back(at);
    if (dims[i].batch) result.push_back(dims[i].extent);
  }
  if (!g.fits(right)) return;
  for (std::int64_t d = 0; d < a.rank(); ++d) {
    if (!used[static_cast<std::size_t>(d)]) result.push_back(a.dim(d));
  }
  result.insert(result.end(), free.begin(), free.end());
  if (!g.fits(result)) return;
  const Tensor b = g.of_type(dtype, right);
  g.add(ir::Op::contraction, {a, b}, attr, is_half(dtype) && g.random.chance(0.4) ? f32 : dtype, result);
}

void Maker::random_uniform(DType dtype) {
  g.add(ir::Op::random_uniform, {g.of_type(i64, {}), g.of_type(i64, {})},
        ir::RandomAttr{g.random.between(0, 3)}, dtype, g.shape());
}

void Maker::custom_call(DType dtype) {
  const Tensor x = g.operand(dtype);
  const std::vector<Dim> dims = x.dims();
  g.add(ir::Op::custom_call, {x}, turning_kernel(dtype, product(dims), g.random.bits()), dtype, dims);
}

void make_compound(GrowingGraph& g, DType dtype) {
  const Tensor x = g.operand(dtype, 1);
  const std::int64_t last = x.rank() - 1;
  const DType weights = g.random.chance(0.5) ? dtype : f32;
  const auto row = [&] { return g.of_type(weights == f32 || dtype == f64 ? dtype : weights, {x.dim(last)}); };
  switch (g.random.below(12)) {
    case 0:
      softmax(x, axis_of(g.random, x));
      return;
    case 1:
      log_softmax(x, axis_of(g.random, x));
      return;
    case 2:
      layer_norm(x, row(), row());
      return;
    case 3:
      rms_norm(x, row());
      return;
    case 4:
      gelu(x);
      return;
    case 5:
      silu(x);
      return;
    case 6:
      linear(x, g.of_type(dtype, {x.dim(last), g.extent()}));
      return;
    case 7: {
      const Tensor table = g.operand(dtype, 2);
      if (table.rank() == 2 && proven_le(1, table.dim(0))) embedding(table, g.operand(i32));
      return;
    }
    case 8: {
      const Dim length = g.random.between(1, 9), width = g.random.between(1, 8);
      const std::vector<Dim> dims = {g.random.between(1, 2), g.random.between(1, 3), length, width};
      const Tensor q = g.of_type(dtype, dims), k = g.of_type(dtype, dims), v = g.of_type(dtype, dims);
      attention(q, k, v, {.causal = g.random.chance(0.5)});
      return;
    }
    case 9: {
      std::vector<Dim> labels = x.dims();
      labels.pop_back();
      cross_entropy(x, g.of_type(i32, labels));
      return;
    }
    case 10:
      mean(x, {axis_of(g.random, x)}, {.keep_dims = g.random.chance(0.5)});
      return;
    default:
      // The operators: f16 and bf16 are converted, computed and converted back.
      const Tensor y = g.of_type(dtype, x.dims());
      switch (g.random.below(4)) {
        case 0:
          x + y;
          return;
        case 1:
          x* y;
          return;
        case 2:
          maximum(x, y);
          return;
        default:
          sum(x, {axis_of(g.random, x)}, {.keep_dims = g.random.chance(0.5)});
      }
  }
}

}  // namespace fuse::fuzz
