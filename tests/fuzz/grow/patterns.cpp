// SPDX-License-Identifier: Apache-2.0
#include "fuzz/grow/patterns.hpp"

#include <fuse/fuse.hpp>
#include <vector>

#include "fuzz/grow/custom_kernel.hpp"
#include "fuzz/grow/generator.hpp"
#include "fuzz/grow/makers.hpp"

namespace fuse::fuzz {
namespace {

DType real_type(GrowingGraph& g) { return g.random.pick({f32, f32, f16, bf16, f64}); }

/// A function of one operand whose result is finite, in the operand's type.
Tensor moved(GrowingGraph& g, const Tensor& x) {
  switch (g.random.below(4)) {
    case 0:
      return -x;
    case 1:
      return abs(x);
    case 2:
      return maximum(x, g.of_type(x.dtype(), x.dims()));
    default:
      return x + g.of_type(x.dtype(), x.dims());
  }
}

Tensor reduced(GrowingGraph& g, const Tensor& x, const std::vector<std::int64_t>& dims) {
  return g.random.chance(0.5) ? sum(x, dims) : max(x, dims);
}

/// What a program does with a row: one, two or three passes over it.
void walk_rows(GrowingGraph& g, const Tensor& x) {
  const std::int64_t last = x.rank() - 1;
  switch (g.random.below(5)) {
    case 0:
      softmax(x, last);
      return;
    case 1:
      log_softmax(x, last);
      return;
    case 2:
      layer_norm(x, g.of_type(x.dtype(), {x.dim(last)}), g.of_type(x.dtype(), {x.dim(last)}));
      return;
    case 3:
      rms_norm(x, g.of_type(x.dtype(), {x.dim(last)}));
      return;
    default:
      x - mean(x, {last}, {.keep_dims = true});
  }
}

/// x with an update at small starts.
Tensor updated(GrowingGraph& g, const Tensor& x, const Tensor& update) {
  const DType dtype = g.random.pick({i32, i64});
  std::vector<Tensor> operands = {x, update};
  for (std::int64_t d = 0; d < x.rank(); ++d) {
    operands.push_back(g.random.chance(0.5) ? g.input(dtype, {}) : g.constant(dtype, {}));
  }
  return g.add(ir::Op::dynamic_update_slice, operands);
}

/// An update whose result takes the memory of what it updates, beside readers of the old value.
void update_in_place(GrowingGraph& g) {
  const DType dtype = g.random.pick(dtypes());
  const std::vector<Dim> dims = g.shape(1);
  const Tensor x = g.input(dtype, dims);
  std::vector<Dim> part;
  for (const Dim& dim : dims) part.push_back(std::min<std::int64_t>(dim.min(), g.random.between(1, 8)));
  if (g.random.chance(0.4)) slice(x, 0, 0, part[0]);  // reads the old value
  const Tensor result = updated(g, x, g.of_type(dtype, part));
  g.donate(result, x);
  if (g.random.chance(0.3)) slice(result, 0, 0, part[0]);
}

/// Two outputs, each in the memory of an input that the other reads.
void cross_donations(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f64, f16, bf16, i32, i64});
  const std::vector<Dim> dims = g.shape(1);
  const Tensor x = g.input(dtype, dims), y = g.input(dtype, dims);
  Tensor a = maximum(x, y), b = x + y;
  if (g.random.chance(0.3)) a = reverse(a, {0});
  if (g.random.chance(0.3)) b = reverse(b, {0});
  if (g.random.chance(0.4)) a = updated(g, x, y);
  const bool swapped = g.random.chance(0.5);
  g.donate(a, swapped ? y : x);
  g.donate(b, swapped ? x : y);
}

/// Values that are computed from their donors element by element, as a step of an optimiser does.
void step_optimiser(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f64, f16, bf16});
  const std::vector<Dim> dims = g.shape(1);
  const Tensor x = g.input(dtype, dims), m = g.input(dtype, dims), step = g.of_type(dtype, dims);
  const Tensor moment = m * 0.5 + step;
  Tensor next = x - moment;
  if (g.random.chance(0.3)) next = updated(g, next, step);
  if (g.random.chance(0.3)) sum(m, {0});
  if (g.random.chance(0.2)) next = next + reverse(x, {0});
  g.donate(moment, m);
  g.donate(next, x);
  if (g.random.chance(0.4)) reduced(g, next, {0});
}

/// A cache with a new row, of which a GEMM reads the first ones; or heads that lie side by side.
void read_in_strides(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const std::int64_t heads = g.random.between(1, 4), rows = g.random.between(2, 12),
                     width = 4 * g.random.between(1, 4);
  const Tensor query = g.of_type(dtype, {heads, g.random.between(1, 5), width});
  Tensor cache = g.input(dtype, {heads, rows, width});
  if (g.random.chance(0.6)) {
    const Tensor now = updated(g, cache, g.of_type(dtype, {heads, 1, width}));
    g.donate(now, cache);
    cache = now;
  }
  Tensor keys = slice(cache, 1, 0, g.random.between(1, rows));
  if (g.random.chance(0.4)) {
    const Tensor flat = g.input(dtype, {rows, heads * width});
    keys = transpose(reshape(flat, {rows, heads, width}), {1, 0, 2});
  }
  matmul(query, keys, {.transpose_b = true});
}

/// What parameters alone determine, and a GEMM reads.
void pack_parameters(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const Dim k = g.random.between(1, 40), n = g.random.between(1, 40);
  Tensor w = g.input(dtype, {k, n}, true);
  switch (g.random.below(4)) {
    case 0:
      w = tanh(w);
      break;
    case 1:
      w = transpose(g.input(dtype, {n, k}, true), {1, 0}) + w;
      break;
    case 2:
      w = concat({w, g.input(dtype, {k, g.random.between(1, 9)}, true)}, 1);
      break;
    default:
      w = w * g.input(dtype, {k, n}, true);
  }
  if (g.random.chance(0.4)) sum(w, {0});
  matmul(g.of_type(dtype, {g.extent(), k}), w);
}

/// Each of two or three ops asks where an element stands, behind the one before it.
void nest_predicates(GrowingGraph& g) {
  const DType dtype = g.random.pick(dtypes());
  Tensor x = g.input(dtype, g.shape(1));
  for (std::int64_t depth = g.random.between(2, 3); depth > 0; --depth) {
    const std::int64_t axis = g.random.between(0, x.rank() - 1);
    switch (g.random.below(4)) {
      case 0: {
        ir::PadAttr attr;
        for (std::int64_t d = 0; d < x.rank(); ++d) {
          attr.low.push_back(g.random.between(0, 3));
          attr.high.push_back(g.random.between(0, 3));
        }
        x = g.add(ir::Op::pad, {x, g.of_type(dtype, {})}, attr);
        break;
      }
      case 1:
      case 2: {
        std::vector<Dim> dims = x.dims();
        dims[static_cast<std::size_t>(axis)] = g.random.between(1, 4);
        const Tensor part = g.of_type(dtype, dims);
        x = g.random.chance(0.5) ? concat({x, part}, axis) : concat({part, x}, axis);
        break;
      }
      default: {
        std::vector<Dim> part;
        for (const Dim& dim : x.dims()) part.push_back(std::min<std::int64_t>(dim.min(), 3));
        x = updated(g, x, g.of_type(dtype, part));
      }
    }
    if (g.random.chance(0.3) && is_floating(dtype)) x = moved(g, x);
    if (g.random.chance(0.3)) x = reverse(x, {axis});
    const Dim extent = x.dim(axis);
    if (g.random.chance(0.4) && proven_le(3, extent)) x = slice(x, axis, 1, extent - 1);
  }
}

/// A GEMM or a custom kernel that reads columns of a matrix.
void slice_columns(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const std::int64_t n = g.random.pick({4, 8, 16, 24, 33});
  const std::int64_t from = g.random.between(0, n / 2), to = g.random.between(from + 1, n - 1);
  Tensor x = g.of_type(dtype, {g.random.between(2, 20), n});
  if (g.random.chance(0.3)) x = moved(g, x);
  const Tensor columns = slice(x, 1, from, to);
  if (g.random.chance(0.3)) {
    const std::vector<Dim> dims = columns.dims();
    g.add(ir::Op::custom_call, {columns}, turning_kernel(dtype, product(dims), g.random.bits()), dtype, dims);
  } else {
    matmul(columns, g.of_type(dtype, {to - from, g.extent()}));
  }
}

/// The steps of a recurrence, each with a slice of its own of one tensor.
void unroll_over_slices(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const std::int64_t steps = g.random.between(2, 4), rows = g.random.between(1, 12),
                     n = g.random.pick({5, 8, 16, 24}), apart = g.random.between(1, 2);
  const std::size_t axis = g.random.below(3);
  std::vector<Dim> dims = {rows, n};
  dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(axis), steps * apart);
  const Tensor x = g.input(dtype, dims), u = g.input(dtype, {n, n}, true);
  Tensor h = g.input(dtype, {rows, n});
  const std::uint64_t kind = g.random.below(3);
  for (std::int64_t t = 0; t < steps; ++t) {
    const std::int64_t start = t * apart;
    const Tensor part = reshape(slice(x, static_cast<std::int64_t>(axis), start, start + 1), {rows, n});
    const Tensor sum = part + matmul(h, u);
    h = kind == 0 ? tanh(sum) : kind == 1 ? softmax(sum, 1) : sum - mean(sum, {1}, {.keep_dims = true});
  }
}

/// GEMMs that read rows of a matrix where they lie, and write theirs one behind the other.
void lie_in_memory(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const std::int64_t m = g.random.between(1, 12), k = 8 * g.random.between(1, 4),
                     n = 8 * g.random.between(1, 3);
  Tensor x = g.input(dtype, {3 * m, k});
  if (g.random.chance(0.4)) x = softmax(x, 1);
  std::vector<Tensor> parts;
  for (std::int64_t i = g.random.between(0, 1); i < 3; ++i) {
    parts.push_back(matmul(slice(x, 0, i * m, (i + 1) * m), g.input(dtype, {k, n}, true)));
  }
  const Tensor all = concat(parts, 0);
  if (g.random.chance(0.5)) moved(g, all);
}

/// A concat with several readers, whose parts have steps of their own or not.
void read_concat_again(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const std::vector<Dim> dims = g.shape(1);
  const std::int64_t axis = g.random.between(0, static_cast<std::int64_t>(dims.size()) - 1);
  std::vector<Tensor> parts;
  for (std::int64_t i = g.random.between(2, 4); i > 0; --i) {
    Tensor part = g.of_type(dtype, dims);
    if (g.random.chance(0.3)) part = tanh(part);
    if (g.random.chance(0.2)) part = softmax(part, axis);
    parts.push_back(part);
  }
  const Tensor all = concat(parts, axis);
  reduced(g, all, {axis});
  if (g.random.chance(0.5)) slice(all, axis, 0, 1);
  moved(g, all);
}

/// Few rows, so long that several blocks share each.
void walk_long_rows(GrowingGraph& g) {
  const std::int64_t length = g.random.pick({3000, 4096, 6001, 12288});
  std::vector<Dim> dims = {g.random.between(1, 2), length};
  if (g.random.chance(0.2)) dims.insert(dims.begin(), 1);
  walk_rows(g, g.input(real_type(g), dims));
}

/// Rows of a length that nobody states.
void walk_unknown_rows(GrowingGraph& g) {
  const Dim length = g.declare(g.random.between(1, 700));
  Tensor x = g.input(real_type(g), {g.random.between(1, 6), length});
  if (g.random.chance(0.3)) x = moved(g, x);
  if (g.random.chance(0.5)) {
    softmax(x, 1);
  } else {
    walk_rows(g, x);
  }
}

/// Rows that threads walk by vectors, in 16-bit types by pairs.
void walk_vectors(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f16, f16, bf16, bf16});
  Tensor x = g.input(dtype, {g.random.between(1, 24), 8 * g.random.between(1, 24)});
  switch (g.random.below(3)) {
    case 0:
      x = moved(g, moved(g, x));
      break;
    case 1:
      x / sum(abs(x) + 1, {1}, {.keep_dims = true});
      break;
    default:
      walk_rows(g, x);
  }
}

/// A transposed value beside one that is not, both dims longer than a tile's side.
void transpose_tiles(GrowingGraph& g) {
  const DType dtype = real_type(g);
  const Dim a = g.random.between(17, 60), b = g.random.between(17, 60);
  Tensor x = g.input(dtype, {a, b});
  if (g.random.chance(0.5)) x = tanh(x);
  moved(g, transpose(x, {1, 0}) + g.input(dtype, {b, a}));
}

/// Sums over rows and over columns of the same elements.
void walk_rows_and_columns(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f16, bf16});
  const std::vector<Dim> dims = {g.random.between(2, 40), g.random.between(2, 120)};
  const Tensor x = g.input(dtype, dims), dy = g.input(dtype, dims);
  const Tensor by_rows = sum(x * dy, {1}, {.keep_dims = true});
  x - by_rows;
  reduced(g, dy, {0});
  if (g.random.chance(0.6)) sum(dy * (x - by_rows), {0});
}

/// Kernels of several classes that read nothing of each other.
void stand_beside(GrowingGraph& g) {
  for (std::int64_t parts = g.random.between(2, 4); parts > 0; --parts) {
    const DType dtype = real_type(g);
    const std::vector<Dim> dims = {g.random.between(1, 24), g.random.between(1, 90)};
    const Tensor x = g.input(dtype, dims);
    switch (g.random.between(0, 4)) {
      case 0:
        x - max(x, {1}, {.keep_dims = true});
        break;
      case 1:
        sum(x, {1});
        break;
      case 2:
        sum(x * x, {0});
        break;
      case 3:
        cumulative_sum(x, 1);
        break;
      default:
        transpose(tanh(x), {1, 0});
    }
  }
}

/// Values of rows whose later readers walk other dims, at the same position of the outer dims.
void stay_in_slices(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f16, bf16});
  const Dim outer = g.random.chance(0.3) ? g.declare(g.random.between(1, 12)) : Dim(g.random.between(1, 24));
  const Dim length = g.random.between(1, 24), width = g.random.between(1, 40);
  const Tensor x = g.input(dtype, {outer, length, width});
  Tensor rows = sum(g.random.chance(0.5) ? x * x : x, {2});
  if (g.random.chance(0.3)) rows = cumulative_sum(rows, 1);
  if (g.random.chance(0.7)) rows = softmax(rows, 1);
  const Tensor weighted = x * broadcast_in_dim(rows, {outer, length, width}, {0, 1});
  if (g.random.chance(0.6)) sum(weighted, {g.random.between(1, 2)});
  if (g.random.chance(0.4)) {
    const Tensor gate = reshape(slice(rows, 1, 0, 1), {outer});
    tanh(g.input(dtype, {outer, 5})) * broadcast_in_dim(gate, {outer, 5}, {0});
  }
}

/// Costly ops of rows and of columns, which are broadcast.
void repeat_costly_values(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f16, bf16});
  const std::vector<Dim> dims = {g.random.between(2, 24), g.random.between(64, 160)};
  const Tensor x = g.input(dtype, dims);
  const Tensor row = broadcast_in_dim(tanh(g.input(dtype, {dims[0]})), dims, {0}),
               column = broadcast_in_dim(tanh(g.input(dtype, {dims[1]})), dims, {1});
  Tensor y = x + row;
  if (g.random.chance(0.6)) y = y * column;
  if (g.random.chance(0.8)) y = y - sum(x * column, {1}, {.keep_dims = true});
  if (g.random.chance(0.3)) sum(y, {0});
}

/// Passes that read windows of the one before along the outermost dim, so many that each stores its value.
void pass_on_windows(GrowingGraph& g) {
  const DType dtype = g.random.pick({f32, f32, f16, bf16});
  const bool rows = g.random.chance(0.6);
  const std::int64_t extent = rows ? g.random.between(20, 120) : g.random.between(200, 3000);
  std::vector<Dim> dims = {g.random.chance(0.3) ? g.declare(extent) : Dim(extent)};
  if (rows) dims.push_back(g.random.between(4, 30));
  const std::int64_t taps = g.random.between(4, 5), passes = g.random.between(4, 6);
  Tensor x = g.input(dtype, dims);
  for (std::int64_t pass = 0; pass < passes; ++pass) {
    if (g.random.chance(0.15)) x = tanh(x);
    std::vector<Dim> low(dims.size(), 0), high(dims.size(), 0);
    const std::int64_t before = g.random.between(0, taps - 1);
    low[0] = before;
    high[0] = taps - 1 - before;
    const bool pads = g.random.chance(0.8);
    const Tensor around = pads ? pad(x, 0.0, low, high) : concat({x, slice(x, 0, 0, taps - 1)}, 0);
    x = slice(around, 0, 0, dims[0]);
    for (std::int64_t tap = 1; tap < taps; ++tap) x = x + slice(around, 0, tap, dims[0] + tap);
    x = x * 0.25;
  }
  if (g.random.chance(0.3)) -x;
}

constexpr Pattern all[] = {
    {2, 0, "", update_in_place},       {1.2, 0, "", cross_donations},
    {1.5, 0, "", step_optimiser},      {1.5, 0, "", read_in_strides},
    {2, 0, "", pack_parameters},       {3, 0, "", nest_predicates},
    {1.5, 4096, "", slice_columns},    {1.5, 4096, "", lie_in_memory},
    {4, 0, "", read_concat_again},     {2.5, 30'000, "tiny3", walk_long_rows},
    {2, 4096, "", walk_unknown_rows},  {2, 4096, "", walk_vectors},
    {1.5, 4096, "", transpose_tiles},  {2, 4096, "", walk_rows_and_columns},
    {8, 4096, "", unroll_over_slices}, {2, 0, "", stand_beside},
    {2.5, 4096, "", stay_in_slices},   {3.5, 4096, "", repeat_costly_values},
    {8, 4096, "", pass_on_windows},
};

}  // namespace

std::span<const Pattern> patterns() { return all; }

}  // namespace fuse::fuzz
