// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/cpu_gemm.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>

#include "runtime/cpu/gemm/strip_gemm.hpp"
#include "runtime/cpu/gemm/strip_plan.hpp"
#include "runtime/cpu/gemm/thin_gemm.hpp"
#include "runtime/device/host_gemm.hpp"

namespace fuse::runtime::cpu {
namespace {

constexpr std::int64_t largest_side = 256, smallest_side = 32, unit_of_side = 16;
// A tile of a thin result reads a piece of each row of a matrix: short ones are slow to reach.
constexpr std::int64_t thin_side = 512;
constexpr std::int64_t wanted_tiles = 16;
// OpenBLAS packs the operands of each tile, which takes a sixth of the time at 64 x 64: so where there are a
// few tiles of this side, they are not cut further.
constexpr std::int64_t usual_side = 128, enough_tiles = 6;
// Multiply-adds of a chunk that is worth handing to another core, and of a tile that is worth halving.
constexpr double least_work_of_chunk = 1 << 17, least_work_to_halve = 1 << 20;

std::int64_t parts_of(std::int64_t whole, std::int64_t part) { return (whole + part - 1) / part; }

std::int64_t side_of(std::int64_t whole, std::int64_t parts) {
  return std::min(parts_of(parts_of(whole, parts), unit_of_side) * unit_of_side, whole);
}

// OpenBLAS would run threads of its own beside the pool's, and let callers wait for each other.
void run_openblas_on_one_thread() {
  static const bool done = [] {
    const auto set = openblas_library().find<void (*)(int)>("openblas_set_num_threads");
    if (set) set(1);
    return set != nullptr;
  }();
  static_cast<void>(done);
}

bool has_openblas_for(const GemmDesc& d) {
  return (d.operand == DType::f32 || d.operand == DType::f64) && openblas_used();
}

bool has_products(const GemmDesc& d) { return d.calls > 0 && d.batch > 0 && d.m > 0 && d.n > 0 && d.k > 0; }

class TiledGemm final : public Gemm {
 public:
  TiledGemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool, const void* device)
      : desc_(desc), pool_(std::move(pool)), device_(device), whole_(make_host_gemm(desc)) {
    if (!has_products(desc)) return;
    whole_ = nullptr;
    tiling_ = tiling_of(desc);
    const std::int64_t last_rows = desc.m - (tiling_.down - 1) * tiling_.rows,
                       last_columns = desc.n - (tiling_.across - 1) * tiling_.columns;
    gemms_[0] = tile(tiling_.rows, tiling_.columns);
    gemms_[1] = tile(tiling_.rows, last_columns);
    gemms_[2] = tile(last_rows, tiling_.columns);
    gemms_[3] = tile(last_rows, last_columns);
  }
  std::int64_t workspace_bytes() const noexcept override { return 0; }
  std::string algorithm() const override {
    const bool loops = desc_.algorithm != 0 || !is_floating(desc_.operand) || !openblas_used();
    const std::string how = loops ? "on the host, by plain loops" : openblas_name();
    if (tiling_.tiles <= 1) return how;
    return fmt::format("{}, {} tiles of {} x {}", how, tiling_.tiles, tiling_.rows, tiling_.columns);
  }
  Status run(Queue& queue, const void* a, const void* b, void* c, void*,
             const void* extra) const noexcept override {
    if (queue.owner != device_) return foreign_queue();
    const Operands operands{static_cast<const std::byte*>(a), static_cast<const std::byte*>(b),
                            static_cast<std::byte*>(c), static_cast<const std::byte*>(extra)};
    if (whole_) {
      for (std::int64_t i = 0; i < desc_.calls; ++i)
        whole_->run(a, b, operands.c + i * desc_.call_c * result_bytes(), extra);
      return {};
    }
    const std::int64_t chunk_tiles = tiling_.tiles_of_chunk;
    return pool_->run(parts_of(tiling_.tiles, chunk_tiles), [&](std::int64_t chunk, int) noexcept {
      const std::int64_t last = std::min((chunk + 1) * chunk_tiles, tiling_.tiles);
      for (std::int64_t i = chunk * chunk_tiles; i < last; ++i) run_tile(i, operands);
    });
  }

 private:
  struct Operands {
    const std::byte *a, *b;
    std::byte* c;
    const std::byte* extra;
  };

  std::int64_t operand_bytes() const { return static_cast<std::int64_t>(size_of(desc_.operand)); }
  std::int64_t result_bytes() const { return static_cast<std::int64_t>(size_of(desc_.result)); }

  std::unique_ptr<HostGemm> tile(std::int64_t rows, std::int64_t columns) const {
    GemmDesc d = desc_;
    d.m = rows;
    d.n = columns;
    d.batch = d.calls = 1;
    d.stride_a = d.stride_b = d.stride_c = d.call_a = d.call_b = d.call_c = 0;
    d.row_a = row_of_a(desc_);
    d.row_b = row_of_b(desc_);
    d.row_c = row_of_c(desc_);
    d.epilogue = schedule::EpilogueKind::none;
    std::unique_ptr<HostGemm> thin = make_thin_gemm(d);
    return thin ? std::move(thin) : make_host_gemm(d);
  }

  void run_tile(std::int64_t number, const Operands& whole) const noexcept {
    const std::int64_t column = number % tiling_.across, row = number / tiling_.across % tiling_.down,
                       matrix = number / tiling_.across / tiling_.down, in_batch = matrix % desc_.batch,
                       call = matrix / desc_.batch;
    const std::int64_t i = row * tiling_.rows, j = column * tiling_.columns;
    const std::int64_t a = call * desc_.call_a + in_batch * desc_.stride_a +
                           (desc_.transpose_a ? i : i * row_of_a(desc_)),
                       b = call * desc_.call_b + in_batch * desc_.stride_b +
                           (desc_.transpose_b ? j * row_of_b(desc_) : j),
                       c = call * desc_.call_c + in_batch * desc_.stride_c + i * row_of_c(desc_) + j;
    const bool last_row = row == tiling_.down - 1, last_column = column == tiling_.across - 1;
    std::byte* const to = whole.c + c * result_bytes();
    gemms_[(last_row ? 2u : 0u) + (last_column ? 1u : 0u)]->run(whole.a + a * operand_bytes(),
                                                                whole.b + b * operand_bytes(), to, nullptr);
    if (desc_.epilogue == schedule::EpilogueKind::none) return;
    ResultLine line{.first = c, .column = j, .count = std::min(tiling_.columns, desc_.n - j)};
    for (std::int64_t left = std::min(tiling_.rows, desc_.m - i); left > 0; --left) {
      if (desc_.result == DType::f64)
        apply_epilogue<double>(desc_, line, whole.c, whole.extra);
      else
        apply_epilogue<float>(desc_, line, whole.c, whole.extra);
      line.first += row_of_c(desc_);
    }
  }

  const GemmDesc desc_;
  const std::shared_ptr<WorkerPool> pool_;
  const void* const device_;
  std::unique_ptr<HostGemm> whole_;  ///< of one without products
  Tiling tiling_;
  std::array<std::unique_ptr<HostGemm>, 4>
      gemms_;  ///< of tiles inside, at the right, at the bottom, in the corner
};

}  // namespace

Tiling tiling_of(const GemmDesc& d) {
  const bool thin = d.m <= most_gemv_rows || d.n <= most_gemv_rows;
  const std::int64_t largest = thin ? thin_side : largest_side;
  Tiling t{.down = parts_of(d.m, largest), .across = parts_of(d.n, largest)};
  const auto count = [&] { return d.calls * d.batch * t.down * t.across; };
  const auto work = [&] {
    return static_cast<double>(parts_of(d.m, t.down)) * static_cast<double>(parts_of(d.n, t.across)) *
           static_cast<double>(d.k);
  };
  while (!thin && count() < wanted_tiles && work() >= least_work_to_halve) {
    const std::int64_t rows = parts_of(d.m, t.down), columns = parts_of(d.n, t.across);
    if (std::max(rows, columns) <= (count() < enough_tiles ? smallest_side : usual_side)) break;
    (rows > columns ? t.down : t.across) *= 2;
  }
  t.rows = side_of(d.m, t.down);
  t.columns = side_of(d.n, t.across);
  t.down = parts_of(d.m, t.rows);  // sides that were rounded up may be fewer
  t.across = parts_of(d.n, t.columns);
  t.tiles = count();
  t.tiles_of_chunk =
      static_cast<std::int64_t>(std::clamp(least_work_of_chunk / work(), 1.0, static_cast<double>(t.tiles)));
  return t;
}

std::unique_ptr<Gemm> make_cpu_gemm(const GemmDesc& desc, std::shared_ptr<WorkerPool> pool,
                                    const void* device, const GemmKernels& kernels) {
  check_gemm_desc(desc);
  const bool openblas = has_openblas_for(desc);
  if (openblas) run_openblas_on_one_thread();
  if (has_products(desc) && takes_strips(desc, openblas, kernels.panel_columns))
    return make_strip_gemm(desc, std::move(pool), device, kernels);
  return std::make_unique<TiledGemm>(desc, std::move(pool), device);
}

std::int64_t most_cpu_gemm_scratch(const WorkerPool& pool) {
  constexpr std::int64_t megabyte = 1 << 20;
  return (4 * (std::int64_t{pool.helpers()} + 1) + 32) * megabyte;
}

std::int64_t packed_cpu_gemm_bytes(const GemmDesc& desc, const GemmKernels& kernels) {
  return panel_bytes(desc, has_openblas_for(desc), kernels);
}

bool prefers_packed_cpu_gemm(const GemmDesc& desc, const GemmKernels& kernels) {
  return prefers_panels(desc) && packed_cpu_gemm_bytes(desc, kernels) > 0;
}

bool cpu_gemm_reads_backwards(const GemmDesc& d, const GemmKernels& kernels) {
  return has_products(d) && d.m <= most_thin_rows && !d.packed_b &&
         takes_strips(d, has_openblas_for(d), kernels.panel_columns);
}

Status pack_cpu_gemm(const GemmDesc& desc, WorkerPool& pool, const void* b, void* to,
                     const GemmKernels& kernels) {
  return pack_panels(desc, pool, b, to, kernels);
}

Status foreign_queue() noexcept { return {ErrorCode::internal, "the queue was made by another device"}; }

}  // namespace fuse::runtime::cpu
