// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/strip_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <vector>

#include "runtime/cpu/gemm/cpu_gemm.hpp"
#include "runtime/cpu/gemm/strip_plan.hpp"

namespace fuse::runtime::cpu {
namespace {

// Of b: smaller ones are packed in no time.
constexpr std::int64_t least_side_of_packed = 32;
// Between what a few rows multiply and what is fetched.
constexpr std::int64_t bytes_ahead_of_thin = 4096;

/// A part of a tile of a matrix.
struct Unit {
  std::int64_t number = 0, matrix = 0, row = 0, column = 0, part = 0;  ///< of tiles and parts
};

/// A side as depth x rows of f32. `turning`: room for rows_turned rows of it, where it lies the other way.
void copy_as_floats(const GemmKernels& kernels, std::size_t type, const std::byte* from, const Side& side,
                    std::int64_t depth, std::int64_t rows, float* to, std::int64_t to_row,
                    float* turning) noexcept {
  const auto widen = kernels.widen[type];
  const std::int64_t bytes_of_row = side.row * (type == 0 ? 4 : 2);
  if (side.depth_lies_apart) {
    for (std::int64_t k = 0; k < depth; ++k) widen(from + k * bytes_of_row, to + k * to_row, rows);
    return;
  }
  if (type == 0)
    return kernels.transpose(reinterpret_cast<const float*>(from), side.row, rows, depth, to, to_row);
  const std::int64_t row_of_turning = whole_lines(depth);
  for (std::int64_t j = 0; j < rows; j += rows_turned) {
    const std::int64_t count = std::min(rows_turned, rows - j);
    for (std::int64_t i = 0; i < count; ++i)
      widen(from + (j + i) * bytes_of_row, turning + i * row_of_turning, depth);
    kernels.transpose(turning, row_of_turning, count, depth, to + j, to_row);
  }
}

class StripGemm final : public Gemm {
 public:
  StripGemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool, const void* device,
            const GemmKernels& kernels)
      : desc_(desc),
        plan_(strip_plan_of(desc, kernels.panel_columns)),
        layout_(panel_layout_of(desc.k, desc.n, kernels.panel_columns)),
        pool_(std::move(pool)),
        device_(device),
        kernels_(kernels),
        type_(static_cast<std::size_t>(type_index(desc.operand))),
        chunks_((plan_.units + plan_.units_of_chunk - 1) / plan_.units_of_chunk) {
    // Rounded up, so that no two threads write to one line of a cache.
    room_ = (plan_.room() + 31) / 32 * 32;
    const std::int64_t threads = chunks_ > 1 ? pool_->helpers() + 1 : 1;
    rooms_ = threads * room_;
  }

  std::int64_t workspace_bytes() const noexcept override {
    return (rooms_ + plan_.partial_sums()) * static_cast<std::int64_t>(sizeof(float));
  }
  std::string algorithm() const override {
    if (plan_.panel_columns)
      return fmt::format("panels of {} columns of {}{}, {} x {} a tile{}, {} unit{}, on {}",
                         plan_.panel_columns, to_string(desc_.operand),
                         plan_.packed_before ? ", packed once" : "", plan_.tile_rows, plan_.tile_columns,
                         plan_.parts > 1 ? fmt::format(", k in {} parts", plan_.parts) : "", plan_.units,
                         plan_.units == 1 ? "" : "s", kernels_.level);
    return fmt::format("strips of {} row{} {} {} of {}, {} x {} a tile{}, {} unit{}{}, on {}",
                       plan_.tile_rows, plan_.tile_rows == 1 ? "" : "s", plan_.along ? "along" : "across",
                       plan_.few.is_b ? "a" : "b", to_string(desc_.operand), plan_.tile_rows,
                       plan_.tile_columns, plan_.parts > 1 ? fmt::format(", k in {} parts", plan_.parts) : "",
                       plan_.units, plan_.units == 1 ? "" : "s", desc_.backwards ? ", backwards" : "",
                       kernels_.level);
  }
  Status run(Queue& queue, const void* a, const void* b, void* c, void* workspace,
             const void* extra) const noexcept override {
    if (queue.owner != device_) return foreign_queue();
    if (!workspace && workspace_bytes() > 0)
      return {ErrorCode::invalid_argument, "a GEMM of the cpu device was given no workspace"};
    Run run{static_cast<const std::byte*>(plan_.few.is_b ? b : a),
            static_cast<const std::byte*>(plan_.few.is_b ? a : b), c, extra, static_cast<float*>(workspace)};
    Status status = pool_->run(chunks_, [&](std::int64_t chunk, int thread) noexcept {
      const std::int64_t first = place_of(chunk) * plan_.units_of_chunk,
                         last = std::min(first + plan_.units_of_chunk, plan_.units);
      float* const room = run.workspace + thread * room_;
      for (std::int64_t i = first; i < last; ++i) compute(unit(i), run, room);
    });
    if (!status || plan_.parts == 1) return status;
    return pool_->run(plan_.units / plan_.parts,
                      [&](std::int64_t tile, int) noexcept { add_parts(unit(tile * plan_.parts), run); });
  }

 private:
  struct Run {
    const std::byte *few, *many;
    void* c;
    const void* extra;
    float* workspace;
  };

  // The pool hands chunks out from both ends, so that the caller's core has the first half in its caches. The
  // other direction begins in the middle: each half stays where it is, and what was read last comes first.
  std::int64_t place_of(std::int64_t chunk) const noexcept {
    const std::int64_t half = chunks_ / 2;
    if (!desc_.backwards) return chunk;
    return chunk < half ? half - 1 - chunk : half + chunks_ - 1 - chunk;
  }

  // Parts of a tile are neighbours, then tiles that read the same rows.
  Unit unit(std::int64_t number) const noexcept {
    const std::int64_t tile = number / plan_.parts, line = tile / plan_.across;
    return {number, line / plan_.down, line % plan_.down * plan_.tile_rows,
            tile % plan_.across * plan_.tile_columns, number % plan_.parts};
  }
  std::int64_t rows_of(const Unit& u) const noexcept { return std::min(plan_.tile_rows, plan_.rows - u.row); }
  std::int64_t columns_of(const Unit& u) const noexcept {
    return std::min(plan_.tile_columns, plan_.columns - u.column);
  }

  std::int64_t matrix_of(const Unit& u, std::int64_t stride, std::int64_t call) const noexcept {
    return u.matrix / desc_.batch * call + u.matrix % desc_.batch * stride;
  }
  const std::byte* operand(const std::byte* base, const Side& side, const Unit& u, std::int64_t row,
                           std::int64_t depth) const noexcept {
    const std::int64_t matrix =
        side.is_b ? matrix_of(u, desc_.stride_b, desc_.call_b) : matrix_of(u, desc_.stride_a, desc_.call_a);
    return base + (matrix + side.offset(row, depth)) * static_cast<std::int64_t>(size_of(desc_.operand));
  }
  const std::byte* line(const std::byte* from, const Side& side, std::int64_t number) const noexcept {
    return from + number * side.row * static_cast<std::int64_t>(size_of(desc_.operand));
  }

  /// The sums of a part of a tile; with one part, the result.
  void compute(const Unit& u, const Run& run, float* room) const noexcept {
    float* const packed_few = room;
    float* const packed_many = packed_few + plan_.few_room();
    float* const turning = packed_many + plan_.many_room();
    float* const own_sums = turning + plan_.turning_room();
    const std::int64_t first = u.part * plan_.part_depth,
                       last = std::min(first + plan_.part_depth, plan_.depth);
    Strip s{.rows = rows_of(u), .columns = columns_of(u)};
    place_sums(u, run, own_sums, s);
    for (std::int64_t k = first; k < last; k += plan_.step) {
      s.depth = std::min(plan_.step, last - k);
      s.adds = k > first;
      const std::byte* const few = operand(run.few, plan_.few, u, u.row, k);
      if (plan_.packs_few)
        pack_few(few, s, packed_few, turning);
      else
        s = with_few(s, reinterpret_cast<const float*>(few));
      if (plan_.panel_columns) {
        multiply_panels(u, run, s, k, packed_many, turning);
        continue;
      }
      const std::byte* const many = operand(run.many, plan_.many, u, u.column, k);
      s.b = many;
      s.b_row = plan_.many.row;
      if (plan_.packs_many) pack_many(many, s, packed_many, turning);
      const std::size_t type = plan_.packs_many ? 0 : type_;
      (plan_.along ? kernels_.along[type] : kernels_.across[type])(s);
    }
    if (!plan_.in_place && plan_.parts == 1) store(u, run, s.sums, s.sums_row);
    if (plan_.in_place) finish(u, run);
  }

  /// A step of k: each panel meets all rows of the tile while it is in a cache.
  void multiply_panels(const Unit& u, const Run& run, const Strip& whole, std::int64_t k, float* packed,
                       float* turning) const noexcept {
    const auto element_bytes = static_cast<std::int64_t>(size_of(desc_.operand));
    for (std::int64_t j = 0; j < whole.columns; j += plan_.panel_columns) {
      Strip s = whole;
      s.columns = std::min(plan_.panel_columns, whole.columns - j);
      s.sums += j;
      s.b_row = plan_.panel_columns;
      if (plan_.packed_before) {
        const std::byte* const panel = run.many + layout_.offset(k, u.column + j) * element_bytes;
        s.b = panel;
        // Many rows take a while, in which the next panel comes; a few read this one at the speed of memory.
        s.next_row_bytes = s.b_row * element_bytes;
        s.next = panel + (s.rows <= most_thin_rows ? bytes_ahead_of_thin : s.depth * s.next_row_bytes);
        kernels_.panel[type_](s);
        continue;
      }
      const std::byte* const panel = operand(run.many, plan_.many, u, u.column + j, k);
      copy_many(panel, s, packed, turning);
      if (plan_.many.depth_lies_apart && j + plan_.panel_columns < whole.columns) {
        s.next = panel + plan_.panel_columns * element_bytes;
        s.next_row_bytes = plan_.many.row * element_bytes;
      }
      s.b = packed;
      kernels_.panel[0](s);
    }
  }

  std::int64_t row_of_sums() const noexcept { return whole_lines(plan_.tile_columns); }
  float* partial_sums(const Run& run, std::int64_t number) const noexcept {
    return run.workspace + rooms_ + number * plan_.tile_rows * row_of_sums();
  }
  void place_sums(const Unit& u, const Run& run, float* own, Strip& s) const noexcept {
    if (plan_.in_place) {
      s.sums = static_cast<float*>(run.c) + place(u).first;
      s.sums_row = row_of_c(desc_);
    } else {
      s.sums = plan_.parts > 1 ? partial_sums(run, u.number) : own;
      s.sums_row = row_of_sums();
    }
  }
  Strip with_few(Strip s, const float* few) const noexcept {
    s.a = few;
    s.a_row = plan_.few.depth_lies_apart ? 1 : plan_.few.row;
    s.a_depth = plan_.few.depth_lies_apart ? plan_.few.row : 1;
    return s;
  }

  void pack_few(const std::byte* from, Strip& s, float* to, float* turning) const noexcept {
    const auto widen = kernels_.widen[type_];
    const Side& side = plan_.few;
    s.a = to;
    s.a_depth = 1;
    s.a_row = whole_lines(s.depth);
    if (!side.depth_lies_apart) {
      for (std::int64_t i = 0; i < s.rows; ++i) widen(line(from, side, i), to + i * s.a_row, s.depth);
    } else if (plan_.panel_columns) {
      turn_few(from, s, to, turning);
    } else if (!plan_.along) {
      s.a_row = 1;
      s.a_depth = s.rows;
      widen_lines(from, side, s, to);
    } else {
      widen_lines(from, side, s, turning);
      kernels_.transpose(turning, s.rows, s.depth, s.rows, to, s.a_row);
    }
  }

  /// `few` as depth x rows of f32.
  void widen_lines(const std::byte* from, const Side& side, const Strip& s, float* to) const noexcept {
    const auto widen = kernels_.widen[type_];
    if (side.row == s.rows) return widen(from, to, s.depth * s.rows);
    for (std::int64_t k = 0; k < s.depth; ++k) widen(line(from, side, k), to + k * s.rows, s.rows);
  }

  /// `few`, which lies as depth x rows, as rows x depth of f32.
  void turn_few(const std::byte* from, const Strip& s, float* to, float* turning) const noexcept {
    if (type_ == 0)
      return kernels_.transpose(reinterpret_cast<const float*>(from), plan_.few.row, s.depth, s.rows, to,
                                s.a_row);
    for (std::int64_t k = 0; k < s.depth; k += rows_turned) {
      const std::int64_t count = std::min(rows_turned, s.depth - k);
      for (std::int64_t i = 0; i < count; ++i)
        kernels_.widen[type_](line(from, plan_.few, k + i), turning + i * s.rows, s.rows);
      kernels_.transpose(turning, s.rows, count, s.rows, to + k, s.a_row);
    }
  }

  void pack_many(const std::byte* from, Strip& s, float* to, float* turning) const noexcept {
    s.b = to;
    s.b_row = plan_.row_of_packed_many();
    copy_many(from, s, to, turning);
  }
  /// `many` as depth x columns of f32.
  void copy_many(const std::byte* from, const Strip& s, float* to, float* turning) const noexcept {
    copy_as_floats(kernels_, type_, from, plan_.many, s.depth, s.columns, to, s.b_row, turning);
  }

  /// Where the first row of a tile lies in c, and how the next ones do.
  ResultLine place(const Unit& u) const noexcept {
    const bool turned = plan_.few.is_b;
    const std::int64_t row = turned ? u.column : u.row, column = turned ? u.row : u.column;
    return {.first = matrix_of(u, desc_.stride_c, desc_.call_c) + row * row_of_c(desc_) + column,
            .apart = turned ? row_of_c(desc_) : 1,
            .column = column,
            .turned = turned,
            .count = columns_of(u)};
  }
  template <class F>
  void each_line(const Unit& u, const F& f) const noexcept {
    ResultLine line = place(u);
    for (std::int64_t i = 0; i < rows_of(u); ++i) {
      f(line, i);
      line.first += line.turned ? 1 : row_of_c(desc_);
      if (line.turned) ++line.column;
    }
  }

  void store(const Unit& u, const Run& run, const float* sums, std::int64_t row) const noexcept {
    each_line(u, [&](const ResultLine& line, std::int64_t i) {
      if (desc_.result == DType::f32)
        store_line<float>(line, run, sums + i * row);
      else if (desc_.result == DType::bf16)
        store_line<bfloat16>(line, run, sums + i * row);
      else
        store_line<half>(line, run, sums + i * row);
    });
    finish(u, run);
  }
  template <class T>
  void store_line(const ResultLine& line, const Run& run, const float* sums) const noexcept {
    T* to = static_cast<T*>(run.c) + line.first;
    const auto narrow = kernels_.narrow[static_cast<std::size_t>(type_index(desc_.result))];
    if (line.apart == 1) return narrow(sums, to, line.count);
    std::array<T, 64> piece;
    for (std::int64_t j = 0; j < line.count; j += 64) {
      const std::int64_t count = std::min<std::int64_t>(64, line.count - j);
      narrow(sums + j, piece.data(), count);
      for (std::int64_t i = 0; i < count; ++i, to += line.apart) *to = piece[static_cast<std::size_t>(i)];
    }
  }
  void finish(const Unit& u, const Run& run) const noexcept {
    if (desc_.epilogue == schedule::EpilogueKind::none) return;
    each_line(u, [&](const ResultLine& line, std::int64_t) {
      apply_epilogue<float>(desc_, line, run.c, run.extra);
    });
  }

  /// In their order, into the sums of the first one.
  void add_parts(const Unit& u, const Run& run) const noexcept {
    float* const sums = partial_sums(run, u.number);
    for (std::int64_t part = 1; part < plan_.parts; ++part) {
      const float* const more = partial_sums(run, u.number + part);
      for (std::int64_t i = 0; i < rows_of(u); ++i)
        kernels_.add(more + i * row_of_sums(), sums + i * row_of_sums(), columns_of(u));
    }
    store(u, run, sums, row_of_sums());
  }

  const GemmDesc desc_;
  const StripPlan plan_;
  const PanelLayout layout_;
  const std::shared_ptr<WorkerPool> pool_;
  const void* const device_;
  const GemmKernels& kernels_;
  const std::size_t type_;
  const std::int64_t chunks_;
  std::int64_t room_ = 0, rooms_ = 0;  ///< floats of one thread, and of all
};

}  // namespace

std::unique_ptr<Gemm> make_strip_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                      const void* device, const GemmKernels& kernels) {
  return std::make_unique<StripGemm>(desc, std::move(pool), device, kernels);
}

std::int64_t panel_bytes(const GemmDesc& d, bool openblas, const GemmKernels& kernels) {
  const bool shared = (d.batch == 1 || d.stride_b == 0) && (d.calls == 1 || d.call_b == 0);
  if (!shared || std::min(d.n, d.k) < least_side_of_packed ||
      !takes_panels(d, openblas, kernels.panel_columns))
    return 0;
  return panel_layout_of(d.k, d.n, kernels.panel_columns).elements() *
         static_cast<std::int64_t>(size_of(d.operand));
}

Status pack_panels(const GemmDesc& d, WorkerPool& pool, const void* b, void* to, const GemmKernels& kernels) {
  const PanelLayout layout = panel_layout_of(d.k, d.n, kernels.panel_columns);
  const auto type = static_cast<std::size_t>(type_index(d.operand));
  const auto element_bytes = static_cast<std::int64_t>(size_of(d.operand));
  const Side side = side_of_b(d);
  const std::int64_t panels = layout.panels(), pieces = (d.k + layout.piece - 1) / layout.piece;
  // A panel of a piece as f32, and what it is turned from.
  const std::int64_t room = layout.piece * layout.panel_columns + rows_turned * whole_lines(layout.piece);
  std::vector<float> rooms(static_cast<std::size_t>(room * (pool.helpers() + 1)));
  return pool.run(panels * pieces, [&](std::int64_t number, int thread) noexcept {
    const std::int64_t k = number / panels * layout.piece, column = number % panels * layout.panel_columns,
                       depth = std::min(layout.piece, d.k - k),
                       columns = std::min(layout.panel_columns, d.n - column);
    float* const panel = rooms.data() + thread * room;
    if (columns < layout.panel_columns) std::fill_n(panel, depth * layout.panel_columns, 0.0F);
    copy_as_floats(kernels, type, static_cast<const std::byte*>(b) + side.offset(column, k) * element_bytes,
                   side, depth, columns, panel, layout.panel_columns,
                   panel + layout.piece * layout.panel_columns);
    kernels.narrow[type](panel, static_cast<std::byte*>(to) + layout.offset(k, column) * element_bytes,
                         depth * layout.panel_columns);
  });
}

}  // namespace fuse::runtime::cpu
