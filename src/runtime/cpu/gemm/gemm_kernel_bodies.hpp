// The kernels of gemm_kernels.hpp in terms of one level's vectors: included once for each level, inside of a
// namespace that has Vector, lanes, load, load_part, store, store_part, all, fma and the rest. A template
// cannot have its target as a parameter, so that this text is read several times.
// SPDX-License-Identifier: Apache-2.0

// ---- b is depth x columns

// Rows of b that are read together, each in one go. Where one group of rows of a takes them, they come from
// memory: more rows than a cache has ways would evict each other where they lie a power of two apart. Several
// groups find them in the first-level cache.
constexpr std::int64_t rows_from_memory = 12, rows_from_cache = 64;
// Columns between what is multiplied and what is fetched.
constexpr std::int64_t columns_ahead = 64;

/// `count`: how many of the last vector's lanes there are.
template <int Rows, int Vectors, bool Whole, class B>
FUSE_GEMM_TARGET void across_block(const Strip& s, std::int64_t row, std::int64_t column, std::int64_t first,
                                   std::int64_t last, int count, std::int64_t ahead) noexcept {
  const bool adds = s.adds || first > 0;
  float* const sums = s.sums + row * s.sums_row + column;
  Vector acc[Rows][Vectors];
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) {
      const float* const from = sums + i * s.sums_row + v * lanes;
      acc[i][v] = !adds ? all(0) : Whole ? load(from) : load_part(from, count);
    }
  }
  const float* a = s.a + row * s.a_row + first * s.a_depth;
  const B* b = static_cast<const B*>(s.b) + first * s.b_row + column;
  for (std::int64_t k = first; k < last; ++k, a += s.a_depth, b += s.b_row) {
    Vector x[Vectors];
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) {
      x[v] = Whole ? load(b + v * lanes) : load_part(b, count);
    }
    if constexpr (Whole) {
      FUSE_GEMM_UNROLL for (std::size_t at = 0; at < Vectors * lanes * sizeof(B); at += bytes_of_line) {
        __builtin_prefetch(reinterpret_cast<const char*>(b + ahead) + at);
      }
    }
    FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
      const Vector y = all(a[i * s.a_row]);
      FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(y, x[v], acc[i][v]);
    }
  }
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) {
      float* const to = sums + i * s.sums_row + v * lanes;
      if (Whole)
        store(to, acc[i][v]);
      else
        store_part(to, acc[i][v], count);
    }
  }
}

template <int Vectors, bool Whole, class B>
FUSE_GEMM_TARGET void across_rows(const Strip& s, std::int64_t column, std::int64_t first, std::int64_t last,
                                  int count, std::int64_t ahead) noexcept {
  // Groups of equal size: what is left over would be slow on its own.
  const std::int64_t groups = (s.rows + most_rows - 1) / most_rows;
  for (std::int64_t group = 0, row = 0; group < groups; ++group) {
    const std::int64_t rows = (s.rows - row + groups - group - 1) / (groups - group);
    switch (rows) {
      case 1:
        across_block<1, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        break;
      case 2:
        across_block<2, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        break;
      case 3:
        across_block<3, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        break;
      case 4:
        across_block<4, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        break;
      default:
        if constexpr (most_rows > 4 && Vectors <= narrow_vectors) {
          if (rows == 5) across_block<5, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
          if (rows == 6) across_block<6, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        }
        if constexpr (most_rows > 6 && Vectors <= narrow_vectors) {
          if (rows == 7) across_block<7, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
          if (rows == 8) across_block<8, Vectors, Whole, B>(s, row, column, first, last, count, ahead);
        }
    }
    row += rows;
  }
}

/// A few rows of b by very few of a, whose elements stay in registers: b is read row by row as it lies. The
/// order of additions is that of across_block.
template <int Rows, int Depth, class B>
FUSE_GEMM_TARGET void stream_rows(const Strip& s, std::int64_t first) noexcept {
  Vector a[Rows][Depth];
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    FUSE_GEMM_UNROLL for (int k = 0; k < Depth; ++k) {
      a[i][k] = all(s.a[i * s.a_row + (first + k) * s.a_depth]);
    }
  }
  const B* const b = static_cast<const B*>(s.b) + first * s.b_row;
  const bool adds = s.adds || first > 0;
  std::int64_t column = 0;
  for (; column + lanes <= s.columns; column += lanes) {
    Vector acc[Rows];
    FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
      acc[i] = adds ? load(s.sums + i * s.sums_row + column) : all(0);
    }
    FUSE_GEMM_UNROLL for (int k = 0; k < Depth; ++k) {
      const Vector x = load(b + k * s.b_row + column);
      FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) acc[i] = fma(a[i][k], x, acc[i]);
    }
    FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) store(s.sums + i * s.sums_row + column, acc[i]);
  }
  if (column == s.columns) return;
  const int rest = static_cast<int>(s.columns - column);
  Vector acc[Rows];
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    acc[i] = adds ? load_part(s.sums + i * s.sums_row + column, rest) : all(0);
  }
  FUSE_GEMM_UNROLL for (int k = 0; k < Depth; ++k) {
    const Vector x = load_part(b + k * s.b_row + column, rest);
    FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) acc[i] = fma(a[i][k], x, acc[i]);
  }
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    store_part(s.sums + i * s.sums_row + column, acc[i], rest);
  }
}

/// How many rows of b were taken: as many as there are groups of `Depth`.
template <int Rows, int Depth, class B>
FUSE_GEMM_TARGET std::int64_t stream(const Strip& s) noexcept {
  std::int64_t first = 0;
  for (; first + Depth <= s.depth; first += Depth) stream_rows<Rows, Depth, B>(s, first);
  return first;
}

template <class B>
FUSE_GEMM_TARGET void across(const Strip& s) noexcept {
  constexpr int wide = wide_vectors * lanes, narrow = narrow_vectors * lanes;
  const std::int64_t pass = s.rows <= most_rows ? rows_from_memory : rows_from_cache;
  std::int64_t taken = 0;
  if (s.rows == 1) taken = stream<1, 8, B>(s);
  if (s.rows == 2) taken = stream<2, two_rows_depth, B>(s);
  if constexpr (most_rows == 8) {
    if (s.rows == 3) taken = stream<3, 8, B>(s);
    if (s.rows == 4) taken = stream<4, 6, B>(s);
  }
  for (std::int64_t first = taken; first < s.depth; first += pass) {
    const std::int64_t last = first + pass < s.depth ? first + pass : s.depth;
    // At the end of these rows the beginning of the next ones is fetched.
    const std::int64_t next_rows = pass * s.b_row - s.columns + columns_ahead;
    const std::int64_t near_end = s.columns - columns_ahead;
    std::int64_t column = 0;
    if (s.rows <= few_rows) {
      for (; column + wide <= s.columns; column += wide)
        across_rows<wide_vectors, true, B>(s, column, first, last, lanes,
                                           column < near_end ? columns_ahead : next_rows);
    }
    for (; column + narrow <= s.columns; column += narrow)
      across_rows<narrow_vectors, true, B>(s, column, first, last, lanes,
                                           column < near_end ? columns_ahead : next_rows);
    for (; column < s.columns; column += lanes) {
      const std::int64_t rest = s.columns - column;
      across_rows<1, false, B>(s, column, first, last, rest < lanes ? static_cast<int>(rest) : lanes, 0);
    }
  }
}

// ---- b is columns x depth

/// The elements of rows of a that stay in the first-level cache from column to column.
constexpr std::int64_t elements_of_rows = 4096, least_depth_of_pass = 512;
constexpr std::int64_t bytes_ahead = 512;

template <int Rows, int Columns, class B>
FUSE_GEMM_TARGET void along_block(const Strip& s, std::int64_t row, std::int64_t column, std::int64_t first,
                                  std::int64_t last) noexcept {
  constexpr int count = Rows * Columns, padded = (count + 3) / 4 * 4;
  Vector acc[padded];
  FUSE_GEMM_UNROLL for (int i = 0; i < padded; ++i) acc[i] = all(0);
  const float* const a = s.a + row * s.a_row;
  const B* const b = static_cast<const B*>(s.b) + column * s.b_row;
  std::int64_t k = first;
  // One row by f32 is quick enough for the processor's own fetching, which this would only delay.
  constexpr bool fetches = Rows > 1 || sizeof(B) < sizeof(float);
  // What comes next of these rows is fetched, and at their end the beginning of the next ones.
  constexpr std::int64_t within = bytes_ahead / static_cast<std::int64_t>(sizeof(B));
  const std::int64_t next_rows = Columns * s.b_row;
  std::int64_t until = last - within, ahead = within;
  if (until <= first) {
    until = last;
    ahead = next_rows;
  }
  for (;;) {
    for (; k + lanes <= until; k += lanes) {
      Vector x[Columns];
      FUSE_GEMM_UNROLL for (int j = 0; j < Columns; ++j) {
        if constexpr (fetches) __builtin_prefetch(b + j * s.b_row + k + ahead);
        x[j] = load(b + j * s.b_row + k);
      }
      FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
        const Vector y = load(a + i * s.a_row + k);
        FUSE_GEMM_UNROLL for (int j = 0; j < Columns; ++j) {
          acc[i * Columns + j] = fma(y, x[j], acc[i * Columns + j]);
        }
      }
    }
    if (until == last) break;
    until = last;
    ahead = next_rows - (last - first) + within;
  }
  if (k < last) {
    const int rest = static_cast<int>(last - k);
    Vector x[Columns];
    FUSE_GEMM_UNROLL for (int j = 0; j < Columns; ++j) x[j] = load_part(b + j * s.b_row + k, rest);
    FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
      const Vector y = load_part(a + i * s.a_row + k, rest);
      FUSE_GEMM_UNROLL for (int j = 0; j < Columns; ++j) {
        acc[i * Columns + j] = fma(y, x[j], acc[i * Columns + j]);
      }
    }
  }
  alignas(16) float total[padded];
  FUSE_GEMM_UNROLL for (int i = 0; i < padded; i += 4) {
    sum_lanes(acc[i], acc[i + 1], acc[i + 2], acc[i + 3], total + i);
  }
  const bool adds = s.adds || first > 0;
  for (int i = 0; i < Rows; ++i) {
    for (int j = 0; j < Columns; ++j) {
      float* const to = s.sums + (row + i) * s.sums_row + column + j;
      *to = adds ? *to + total[i * Columns + j] : total[i * Columns + j];
    }
  }
}

template <int Columns, class B>
FUSE_GEMM_TARGET void along_rows(const Strip& s, std::int64_t column, std::int64_t first,
                                 std::int64_t last) noexcept {
  const std::int64_t groups = (s.rows + most_rows - 1) / most_rows;
  for (std::int64_t group = 0, row = 0; group < groups; ++group) {
    const std::int64_t rows = (s.rows - row + groups - group - 1) / (groups - group);
    switch (rows) {
      case 1:
        along_block<1, Columns, B>(s, row, column, first, last);
        break;
      case 2:
        along_block<2, Columns, B>(s, row, column, first, last);
        break;
      case 3:
        along_block<3, Columns, B>(s, row, column, first, last);
        break;
      case 4:
        along_block<4, Columns, B>(s, row, column, first, last);
        break;
      default:
        if constexpr (most_rows > 4 && Columns <= narrow_vectors) {
          if (rows == 5) along_block<5, Columns, B>(s, row, column, first, last);
          if (rows == 6) along_block<6, Columns, B>(s, row, column, first, last);
        }
        if constexpr (most_rows > 6 && Columns <= narrow_vectors) {
          if (rows == 7) along_block<7, Columns, B>(s, row, column, first, last);
          if (rows == 8) along_block<8, Columns, B>(s, row, column, first, last);
        }
    }
    row += rows;
  }
}

template <class B>
FUSE_GEMM_TARGET void along(const Strip& s) noexcept {
  const std::int64_t of_row = s.rows > 0 ? elements_of_rows / s.rows : elements_of_rows,
                     step = of_row < least_depth_of_pass ? least_depth_of_pass : of_row / lanes * lanes;
  for (std::int64_t first = 0; first < s.depth; first += step) {
    const std::int64_t last = first + step < s.depth ? first + step : s.depth;
    std::int64_t column = 0;
    if (s.rows <= few_rows) {
      for (; column + wide_vectors <= s.columns; column += wide_vectors)
        along_rows<wide_vectors, B>(s, column, first, last);
    }
    for (; column + narrow_vectors <= s.columns; column += narrow_vectors)
      along_rows<narrow_vectors, B>(s, column, first, last);
    for (; column < s.columns; ++column) along_rows<1, B>(s, column, first, last);
  }
}

// ---- b is a panel

/// Steps of k that fetch together.
constexpr std::int64_t steps_of_panel = 4;

/// Fetches rows in turns: `rows` of them in every `period`th group of steps.
struct PanelFetch {
  const char* at = nullptr;
  std::int64_t row_bytes = 0, lines = 0, rows = 0, period = 1, left = 1;
};

FUSE_GEMM_LANES void fetch(PanelFetch& f) noexcept {
  if (--f.left > 0) return;
  f.left = f.period;
  for (std::int64_t row = 0; row < f.rows; ++row, f.at += f.row_bytes) {
    for (std::int64_t line = 0; line < f.lines; ++line)
      __builtin_prefetch(f.at + line * static_cast<std::int64_t>(bytes_of_line), 0, 2);
  }
}

template <int Rows, int Vectors, class B>
FUSE_GEMM_LANES void panel_step(const float* a, std::int64_t a_row, const B* b,
                                Vector (&acc)[Rows][Vectors]) noexcept {
  Vector x[Vectors];
  FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) x[v] = load(b + v * lanes);
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    const Vector y = all(a[i * a_row]);
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) acc[i][v] = fma(y, x[v], acc[i][v]);
  }
}

/// `count`: how many of the last vector's lanes count.
template <int Rows, int Vectors, class B>
FUSE_GEMM_TARGET void panel_block(const Strip& s, std::int64_t row, PanelFetch& next, int count) noexcept {
  float* const sums = s.sums + row * s.sums_row;
  const bool whole = count == lanes;
  Vector acc[Rows][Vectors];
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) {
      const float* const from = sums + i * s.sums_row + v * lanes;
      acc[i][v] = !s.adds ? all(0) : whole || v + 1 < Vectors ? load(from) : load_part(from, count);
    }
  }
  const float* a = s.a + row * s.a_row;
  const B* b = static_cast<const B*>(s.b);
  std::int64_t k = 0;
  for (; k + steps_of_panel <= s.depth; k += steps_of_panel) {
    fetch(next);
    FUSE_GEMM_UNROLL for (std::int64_t step = 0; step < steps_of_panel; ++step) {
      panel_step<Rows, Vectors, B>(a + k + step, s.a_row, b + (k + step) * s.b_row, acc);
    }
  }
  for (; k < s.depth; ++k) panel_step<Rows, Vectors, B>(a + k, s.a_row, b + k * s.b_row, acc);
  FUSE_GEMM_UNROLL for (int i = 0; i < Rows; ++i) {
    FUSE_GEMM_UNROLL for (int v = 0; v < Vectors; ++v) {
      float* const to = sums + i * s.sums_row + v * lanes;
      if (whole || v + 1 < Vectors)
        store(to, acc[i][v]);
      else
        store_part(to, acc[i][v], count);
    }
  }
}

/// The block of so many rows, of those that there are.
template <int Most, int Vectors, class B>
FUSE_GEMM_TARGET void panel_rows_of(const Strip& s, std::int64_t row, std::int64_t rows, PanelFetch& next,
                                    int count) noexcept {
  if (rows == Most) return panel_block<Most, Vectors, B>(s, row, next, count);
  if constexpr (Most > 1) panel_rows_of<Most - 1, Vectors, B>(s, row, rows, next, count);
}

template <int Vectors, class B>
FUSE_GEMM_TARGET void panel_of(const Strip& s, int count) noexcept {
  const std::int64_t groups = (s.rows + panel_rows - 1) / panel_rows;
  PanelFetch next{.at = static_cast<const char*>(s.next), .row_bytes = s.next_row_bytes};
  if (s.next) {
    // Each group of rows has its part of what is fetched.
    const std::int64_t line = static_cast<std::int64_t>(bytes_of_line);
    next.lines = (s.b_row * static_cast<std::int64_t>(sizeof(B)) + line - 1) / line;
    next.rows = groups < steps_of_panel ? (steps_of_panel + groups - 1) / groups : 1;
    next.period = groups < steps_of_panel ? 1 : groups / steps_of_panel;
  }
  for (std::int64_t group = 0, row = 0; group < groups; ++group) {
    const std::int64_t rows = (s.rows - row + groups - group - 1) / (groups - group);
    panel_rows_of<panel_rows, Vectors, B>(s, row, rows, next, count);
    row += rows;
  }
}

template <class B>
FUSE_GEMM_TARGET void panel(const Strip& s) noexcept {
  const auto vectors = static_cast<int>((s.columns + lanes - 1) / lanes),
             count = static_cast<int>(s.columns - (vectors - 1) * lanes);
  if (vectors == 1) return panel_of<1, B>(s, count);
  if (vectors == 2) return panel_of<2, B>(s, count);
  if constexpr (panel_vectors > 2) panel_of<3, B>(s, count);
}

// ---- elements

template <class T>
FUSE_GEMM_TARGET void widen_row(const void* from, float* to, std::int64_t count) noexcept {
  const T* x = static_cast<const T*>(from);
  for (; count >= lanes; count -= lanes, x += lanes, to += lanes) store(to, load(x));
  if (count > 0) store_part(to, load_part(x, static_cast<int>(count)), static_cast<int>(count));
}

/// to += from
FUSE_GEMM_TARGET void add_row(const float* from, float* to, std::int64_t count) noexcept {
  for (; count >= lanes; count -= lanes, from += lanes, to += lanes) store(to, add(load(to), load(from)));
  for (std::int64_t i = 0; i < count; ++i) to[i] += from[i];
}

FUSE_GEMM_TARGET void scale_row(float* of, float by, std::int64_t count) noexcept {
  const Vector factor = all(by);
  for (; count >= lanes; count -= lanes, of += lanes) store(of, mul(load(of), factor));
  for (std::int64_t i = 0; i < count; ++i) of[i] *= by;
}

template <class T>
FUSE_GEMM_TARGET void narrow_row(const float* from, void* to, std::int64_t count) noexcept {
  T* y = static_cast<T*>(to);
  for (; count >= lanes; count -= lanes, from += lanes, y += lanes) store_narrow(y, load(from));
  for (std::int64_t i = 0; i < count; ++i) y[i] = narrow(from[i], static_cast<T*>(nullptr));
}

FUSE_GEMM_TARGET void transpose(const float* from, std::int64_t from_row, std::int64_t rows,
                                std::int64_t columns, float* to, std::int64_t to_row) noexcept {
  using Four = float __attribute__((vector_size(16)));
  std::int64_t row = 0;
  for (; row + 4 <= rows; row += 4) {
    const float* const x = from + row * from_row;
    float* const y = to + row;
    std::int64_t column = 0;
    for (; column + 4 <= columns; column += 4) {
      Four a, b, c, d;
      std::memcpy(&a, x + column, sizeof a);
      std::memcpy(&b, x + from_row + column, sizeof b);
      std::memcpy(&c, x + 2 * from_row + column, sizeof c);
      std::memcpy(&d, x + 3 * from_row + column, sizeof d);
      const Four ab = __builtin_shufflevector(a, b, 0, 4, 1, 5),
                 cd = __builtin_shufflevector(c, d, 0, 4, 1, 5),
                 ab2 = __builtin_shufflevector(a, b, 2, 6, 3, 7),
                 cd2 = __builtin_shufflevector(c, d, 2, 6, 3, 7);
      const Four r[4] = {
          __builtin_shufflevector(ab, cd, 0, 1, 4, 5), __builtin_shufflevector(ab, cd, 2, 3, 6, 7),
          __builtin_shufflevector(ab2, cd2, 0, 1, 4, 5), __builtin_shufflevector(ab2, cd2, 2, 3, 6, 7)};
      FUSE_GEMM_UNROLL for (int i = 0; i < 4; ++i) std::memcpy(y + (column + i) * to_row, &r[i], sizeof r[i]);
    }
    for (; column < columns; ++column)
      for (int i = 0; i < 4; ++i) y[column * to_row + i] = x[i * from_row + column];
  }
  for (; row < rows; ++row)
    for (std::int64_t column = 0; column < columns; ++column)
      to[column * to_row + row] = from[row * from_row + column];
}

constexpr GemmKernels kernels{
    .level = level_name,
    .across = {across<float>, across<bfloat16>, across<half>},
    .along = {along<float>, along<bfloat16>, along<half>},
    .panel = {panel<float>, panel<bfloat16>, panel<half>},
    .panel_columns = panel_vectors * lanes,
    .widen = {widen_row<float>, widen_row<bfloat16>, widen_row<half>},
    .narrow = {narrow_row<float>, narrow_row<bfloat16>, narrow_row<half>},
    .add = add_row,
    .scale = scale_row,
    .transpose = transpose,
};
