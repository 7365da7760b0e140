// Matrix products. Each element is summed in ascending k in one accumulator, so that neither the blocking nor
// the threads show in the bits. SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "eval/bounds/drawn_sum.hpp"
#include "eval/bounds/sum_order.hpp"
#include "eval/eval_step.hpp"
#include "eval/parallel_for.hpp"

namespace fuse::runtime::reference {
namespace {

// A tile of 2 x 64 bytes: eight 16-byte accumulators, half of the registers of SSE2.
constexpr std::int64_t tile_rows = 2;
template <class T>
constexpr std::int64_t tile_columns = 64 / sizeof(T);
template <class T>
using Lanes [[gnu::vector_size(16)]] = T;

/// A matrix inside an operand: element (i, j) is data[i * row + j * column].
template <class S>
struct Matrix {
  const S* data;
  std::int64_t row, column;
};

template <class T>
Lanes<T> load(const T* from) {
  Lanes<T> lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

/// tile[2][columns] = a[k][2] times b[k][columns], packed and padded with zeros.
template <class T>
void multiply_tile(std::int64_t k, const T* a, const T* b, T* tile) {
  constexpr std::int64_t lanes = 16 / sizeof(T);
  Lanes<T> c00{}, c01{}, c02{}, c03{}, c10{}, c11{}, c12{}, c13{};
  for (std::int64_t i = 0; i < k; ++i, a += tile_rows, b += tile_columns<T>) {
    const Lanes<T> b0 = load(b), b1 = load(b + lanes), b2 = load(b + 2 * lanes), b3 = load(b + 3 * lanes);
    c00 += a[0] * b0;
    c01 += a[0] * b1;
    c02 += a[0] * b2;
    c03 += a[0] * b3;
    c10 += a[1] * b0;
    c11 += a[1] * b1;
    c12 += a[1] * b2;
    c13 += a[1] * b3;
  }
  for (const Lanes<T>& lanes_of_tile : {c00, c01, c02, c03, c10, c11, c12, c13}) {
    std::memcpy(tile, &lanes_of_tile, sizeof lanes_of_tile);
    tile += lanes;
  }
}

/// No processor has lanes of these.
void multiply_tile(std::int64_t k, const Wide* a, const Wide* b, Wide* tile) {
  std::fill_n(tile, tile_rows * tile_columns<Wide>, Wide{0});
  for (std::int64_t i = 0; i < k; ++i, a += tile_rows, b += tile_columns<Wide>) {
    for (std::int64_t row = 0; row < tile_rows; ++row) {
      for (std::int64_t column = 0; column < tile_columns<Wide>; ++column) {
        tile[row * tile_columns<Wide> + column] += a[row] * b[column];
      }
    }
  }
}

/// Rows [begin, end) of the product of m x k and k x n, into c with n columns.
template <class T, class S>
void multiply_rows(Matrix<S> a, Matrix<S> b, std::int64_t begin, std::int64_t end, std::int64_t n,
                   std::int64_t k, S* c) {
  constexpr std::int64_t columns = tile_columns<T>;
  const std::int64_t row_tiles = (end - begin + tile_rows - 1) / tile_rows;
  std::vector<T> packed_a(static_cast<std::size_t>(row_tiles * tile_rows * k));
  for (std::int64_t i = begin; i < end; ++i) {
    T* to = packed_a.data() + (i - begin) / tile_rows * tile_rows * k + (i - begin) % tile_rows;
    for (std::int64_t p = 0; p < k; ++p) to[p * tile_rows] = static_cast<T>(a.data[i * a.row + p * a.column]);
  }
  std::vector<T> packed_b(static_cast<std::size_t>(columns * k));
  T tile[tile_rows * columns];
  for (std::int64_t j = 0; j < n; j += columns) {
    const std::int64_t width = std::min(columns, n - j);
    if (width < columns) std::fill(packed_b.begin(), packed_b.end(), T{});
    for (std::int64_t p = 0; p < k; ++p) {
      const S* from = b.data + p * b.row + j * b.column;
      for (std::int64_t q = 0; q < width; ++q) {
        packed_b[static_cast<std::size_t>(p * columns + q)] = static_cast<T>(from[q * b.column]);
      }
    }
    for (std::int64_t t = 0; t < row_tiles; ++t) {
      multiply_tile(k, packed_a.data() + t * tile_rows * k, packed_b.data(), tile);
      const std::int64_t first = begin + t * tile_rows;
      for (std::int64_t i = first; i < std::min(first + tile_rows, end); ++i) {
        const T* from = tile + (i - first) * columns;
        for (std::int64_t q = 0; q < width; ++q) c[i * n + j + q] = static_cast<S>(from[q]);
      }
    }
  }
}

struct ProductExtents {
  std::int64_t batch = 1, m, n, k;
};

ProductExtents check(const Step& step, bool transpose_a, bool transpose_b) {
  const std::vector<std::int64_t>&a = step.operand(0).shape(), &b = step.operand(1).shape();
  const std::size_t rank = a.size();
  const auto mismatch = [&] {
    step.fail(ErrorCode::shape_mismatch, "the operands do not multiply for these dims");
  };
  if (rank < 2 || b.size() != rank || step.shape.size() != rank) mismatch();
  ProductExtents extents{.m = a[rank - (transpose_a ? 1 : 2)],
                         .n = b[rank - (transpose_b ? 2 : 1)],
                         .k = a[rank - (transpose_a ? 2 : 1)]};
  if (b[rank - (transpose_b ? 1 : 2)] != extents.k || step.shape[rank - 2] != extents.m ||
      step.shape[rank - 1] != extents.n) {
    mismatch();
  }
  for (std::size_t d = 0; d + 2 < rank; ++d) {
    if (a[d] != b[d] || a[d] != step.shape[d]) mismatch();
    extents.batch *= a[d];
  }
  return extents;
}

/// T accumulates, S stores.
template <class T, class S>
void multiply(const Step& step, const ProductExtents& e, bool transpose_a, bool transpose_b, S* out) {
  const S* a = step.operand(0).elements<S>().data();
  const S* b = step.operand(1).elements<S>().data();
  // A task is a band of rows of one matrix of the batch; few matrices are cut into bands for every thread.
  const auto threads = static_cast<std::int64_t>(thread_count());
  const std::int64_t bands = e.batch >= threads ? 1 : std::max<std::int64_t>(1, std::min(threads, e.m / 8));
  const std::int64_t band = (e.m / tile_rows / bands + 1) * tile_rows;
  const double flops_of_task =
      2.0 * static_cast<double>(std::min(band, e.m)) * static_cast<double>(e.n) * static_cast<double>(e.k);
  const auto grain = static_cast<std::size_t>(std::clamp(1e6 / std::max(flops_of_task, 1.0), 1.0, 1e6));
  parallel_for(static_cast<std::size_t>(e.batch * bands), grain, [&](std::size_t from, std::size_t to) {
    for (std::size_t task = from; task < to; ++task) {
      const std::int64_t matrix = static_cast<std::int64_t>(task) / bands;
      const std::int64_t begin = std::min(e.m, static_cast<std::int64_t>(task) % bands * band);
      const Matrix<S> left{a + matrix * e.m * e.k, transpose_a ? 1 : e.k, transpose_a ? e.m : 1};
      const Matrix<S> right{b + matrix * e.k * e.n, transpose_b ? 1 : e.n, transpose_b ? e.k : 1};
      multiply_rows<T, S>(left, right, begin, std::min(e.m, begin + band), e.n, e.k,
                          out + matrix * e.m * e.n);
    }
  });
}

/// A variant's product, accumulated in T.
template <class T>
void draw_product(const Step& step, const ProductExtents& e, bool transpose_a, bool transpose_b,
                  double* out) {
  const double* a = step.operand(0).real().data();
  const double* b = step.operand(1).real().data();
  const Order order(e.k, step.sums);
  // Columns side by side, so that a row of b is read as it lies in memory.
  constexpr std::int64_t side_by_side = 256;
  const std::int64_t bands = (e.n + side_by_side - 1) / side_by_side;
  const auto grain = static_cast<std::size_t>(100000 / (side_by_side * e.k) + 1);
  parallel_for(static_cast<std::size_t>(e.batch * e.m * bands), grain, [&](std::size_t from, std::size_t to) {
    for (auto task = static_cast<std::int64_t>(from); task < static_cast<std::int64_t>(to); ++task) {
      const std::int64_t row = task / bands, matrix = row / e.m, i = row % e.m;
      const std::int64_t begin = task % bands * side_by_side, end = std::min(e.n, begin + side_by_side);
      const double* left = a + matrix * e.m * e.k;
      const double* right = b + matrix * e.k * e.n;
      std::vector<DrawnSum<T>> sums(static_cast<std::size_t>(end - begin), DrawnSum<T>(step.sums));
      for (std::int64_t term = 0; term < e.k; ++term) {
        const std::int64_t k = order(term);
        const auto x = static_cast<T>(left[transpose_a ? k * e.m + i : i * e.k + k]);
        for (std::int64_t j = begin; j < end; ++j) {
          sums[static_cast<std::size_t>(j - begin)].add_product(
              x, static_cast<T>(right[transpose_b ? j * e.k + k : k * e.n + j]));
        }
      }
      for (std::int64_t j = begin; j < end; ++j)
        out[row * e.n + j] = static_cast<double>(sums[static_cast<std::size_t>(j - begin)].value());
    }
  });
}

}  // namespace

ReferenceTensor evaluate_matmul(const Step& step) {
  const auto [transpose_a, transpose_b] = ir::attr<ir::MatmulAttr>(step.node);
  const ProductExtents extents = check(step, transpose_a, transpose_b);
  ReferenceTensor result = step.make();
  if (result.element_count() == 0 || extents.k == 0) return result;  // an empty sum is 0
  if (result.is_wide()) {
    multiply<Wide>(step, extents, transpose_a, transpose_b, result.elements<Wide>().data());
    return result;
  }
  if (!result.is_real()) {
    // Unsigned, so that sums and products wrap.
    const std::span<std::int64_t> out = result.elements<std::int64_t>();
    multiply<std::uint64_t>(step, extents, transpose_a, transpose_b, out.data());
    wrap_to(step.dtype(), out.data(), out.size());
    return result;
  }
  const std::span<double> out = result.elements<double>();
  const bool narrow = step.rounds() && step.operand(0).dtype() != f64;
  if (step.sums != 0) {
    narrow ? draw_product<float>(step, extents, transpose_a, transpose_b, out.data())
           : draw_product<double>(step, extents, transpose_a, transpose_b, out.data());
    round_to(step.dtype(), out.data(), out.size());
  } else if (narrow) {
    multiply<float>(step, extents, transpose_a, transpose_b, out.data());
    round_to(step.dtype(), out.data(), out.size());
  } else {
    multiply<double>(step, extents, transpose_a, transpose_b, out.data());
    if (step.rounds()) round_to(step.dtype(), out.data(), out.size());
  }
  return result;
}

}  // namespace fuse::runtime::reference
