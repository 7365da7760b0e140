// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/gemm/strip_plan.hpp"

#include <algorithm>

#include "runtime/cpu/gemm/gemm_kernels.hpp"

namespace fuse::runtime::cpu {
namespace {

// The longest side of a product that OpenBLAS takes no less time for.
constexpr std::int64_t most_small_side = 64;
// A panel, and the tile's rows that meet it, stay in the second-level cache; some rows of it in the
// first-level cache.
constexpr std::int64_t rows_of_panel = 256, depth_of_panel = 512, panels_of_tile = 8,
                       least_panels_of_turned = 4;
// Halves of fewer rows are not worth that a panel is read once more, or even packed.
constexpr std::int64_t least_rows_of_panel = 64, least_rows_of_packing = 128;
constexpr std::int64_t depth_of_small = 256;
constexpr std::int64_t most_unpacked_rows = 4;
// Narrower panels are of kernels that OpenBLAS's are faster than.
constexpr std::int64_t least_panel_columns = 32;
// Long rows are fetched before they are asked for, short ones are not; long sums leave the cache.
constexpr std::int64_t sums_of_thin = 16384, least_thin_columns = 1024, most_thin_columns = 6144;
constexpr std::int64_t columns_along = 128;
// Elements of rows of `few` that stay in the first-level cache.
constexpr std::int64_t elements_along = 4096, least_step_along = 512, step_across = 2048;
constexpr std::int64_t wanted_units = 32, bytes_of_part = 256 << 10, least_depth_of_part = 64;
// What is worth handing to another core: some microseconds.
constexpr double work_of_unit_group = 1 << 18, bytes_of_unit_group = 128 << 10;
constexpr std::int64_t unit_of_columns = 64;

std::int64_t pieces_of(std::int64_t whole, std::int64_t piece) { return (whole + piece - 1) / piece; }
/// The side of pieces of equal size, a multiple of `unit`, of which there are as many as of the `largest`.
std::int64_t even_side(std::int64_t whole, std::int64_t largest, std::int64_t unit) {
  const std::int64_t pieces = pieces_of(whole, largest);
  return std::min(pieces_of(pieces_of(whole, pieces), unit) * unit, whole);
}

Side side_of_a(const GemmDesc& d) { return {row_of_a(d), d.transpose_a, false}; }

/// Tiles of a thin result, of which all rows are in each.
void cut_thin(StripPlan& p, std::int64_t element_bytes) {
  p.along = !p.many.depth_lies_apart;
  p.tile_rows = p.rows;
  const std::int64_t largest =
      p.along ? columns_along : std::clamp(sums_of_thin / p.rows, least_thin_columns, most_thin_columns);
  p.tile_columns = even_side(p.columns, largest, unit_of_columns);
  p.across = pieces_of(p.columns, p.tile_columns);
  // Parts of k, each long enough to be read for a while.
  const std::int64_t tiles = p.across * p.matrices, bytes = p.tile_columns * p.depth * element_bytes,
                     wanted = pieces_of(wanted_units, tiles),
                     most = std::min(bytes / bytes_of_part, p.depth / least_depth_of_part);
  p.parts = std::max<std::int64_t>(std::min(wanted, most), 1);
}

/// Tiles of one whose rows meet each element of `many` often, or of which it was packed.
void cut_panels(StripPlan& p, std::int64_t element_bytes) {
  const std::int64_t width = p.panel_columns;
  p.tile_rows = even_side(p.rows, rows_of_panel, 8);
  p.tile_columns = even_side(p.columns, panels_of_tile * width, width);
  // Smaller ones where there would be few, and halves of them would still be worth handing to another core.
  const auto count = [&] {
    return pieces_of(p.rows, p.tile_rows) * pieces_of(p.columns, p.tile_columns) * p.matrices;
  };
  const auto is_large = [&] {
    const double elements = static_cast<double>(p.tile_columns) * static_cast<double>(p.depth);
    return elements * static_cast<double>(p.tile_rows) >= 4 * work_of_unit_group ||
           elements * static_cast<double>(element_bytes) >= 2 * bytes_of_unit_group;
  };
  // Rows that are turned first have to meet some columns.
  const std::int64_t least_columns = p.few.depth_lies_apart ? least_panels_of_turned * width : width;
  while (count() < wanted_units && is_large()) {
    if (p.tile_columns > least_columns)
      p.tile_columns = even_side(p.tile_columns, pieces_of(p.tile_columns, 2), width);
    else if (p.tile_rows > (p.packed_before ? least_rows_of_panel : least_rows_of_packing))
      p.tile_rows = even_side(p.tile_rows, pieces_of(p.tile_rows, 2), 8);
    else
      break;
  }
  const std::int64_t pieces = pieces_of(p.depth, p.step);
  if (count() < wanted_units) p.parts = std::min(pieces_of(wanted_units, count()), pieces);
}

bool is_small(const GemmDesc& d) { return std::max({d.m, d.n, d.k / 2}) <= most_small_side; }

}  // namespace

Side side_of_b(const GemmDesc& d) { return {row_of_b(d), !d.transpose_b, true}; }

bool takes_panels(const GemmDesc& d, bool openblas, std::int64_t panel_columns) {
  if (type_index(d.operand) < 0 || d.algorithm != 0) return false;
  return is_half(d.operand) || !openblas || panel_columns >= least_panel_columns;
}

bool takes_strips(const GemmDesc& d, bool openblas, std::int64_t panel_columns) {
  if (takes_panels(d, openblas, panel_columns)) return true;
  if (type_index(d.operand) < 0 || d.algorithm != 0) return false;
  return std::min(d.m, d.n) <= most_thin_rows || is_small(d);
}

bool prefers_panels(const GemmDesc& d) { return d.m > most_unpacked_rows; }

PanelLayout panel_layout_of(std::int64_t depth, std::int64_t columns, std::int64_t panel_columns) {
  return {depth, columns, panel_columns, even_side(depth, depth_of_panel, 4)};
}

StripPlan strip_plan_of(const GemmDesc& d, std::int64_t panel_columns) {
  StripPlan p;
  const bool swapped = d.n < d.m && d.n <= most_thin_rows && !d.packed_b;
  p.few = swapped ? side_of_b(d) : side_of_a(d);
  p.many = swapped ? side_of_a(d) : side_of_b(d);
  p.rows = swapped ? d.n : d.m;
  p.columns = swapped ? d.m : d.n;
  p.depth = d.k;
  if (p.rows == 1 && p.few.row == 1) p.few.depth_lies_apart = false;  // it lies both ways
  p.matrices = d.calls * d.batch;
  p.packed_before = d.packed_b;
  const bool half = is_half(d.operand), thin = p.rows <= most_thin_rows && !d.packed_b,
             panels = d.packed_b || (!thin && !is_small(d));
  const auto element_bytes = static_cast<std::int64_t>(size_of(d.operand));
  if (panels) {
    p.panel_columns = panel_columns;
    p.step = panel_layout_of(p.depth, p.columns, panel_columns).piece;
    cut_panels(p, element_bytes);
  } else if (thin) {
    cut_thin(p, element_bytes);
  } else {
    p.tile_rows = p.rows;
    p.tile_columns = p.columns;
  }
  p.down = pieces_of(p.rows, p.tile_rows);
  p.across = pieces_of(p.columns, p.tile_columns);
  p.part_depth = pieces_of(p.depth, p.parts);
  if (panels) p.part_depth = pieces_of(p.part_depth, p.step) * p.step;  // whole pieces
  p.parts = pieces_of(p.depth, p.part_depth);
  p.units = p.down * p.across * p.matrices * p.parts;
  p.in_place = d.result == DType::f32 && !swapped && p.parts == 1;
  if (panels) {
    p.packs_few = half || p.few.depth_lies_apart;
  } else {
    // Rows that lie a power of two apart evict each other: where there are many, they are copied side by
    // side.
    const bool rows_collide = p.rows > 4 && !p.few.depth_lies_apart && p.few.row > 512;
    p.packs_few = half || rows_collide || (p.along && p.few.depth_lies_apart);
    p.packs_many = !thin && (half || !p.many.depth_lies_apart || p.many.row > 512);
    p.step = !p.packs_few && !p.packs_many ? p.part_depth
             : p.along                     ? std::max(elements_along / p.rows, least_step_along)
             : thin                        ? step_across
                                           : depth_of_small;
    p.step = std::min(p.step, p.part_depth);
  }
  const double work = static_cast<double>(p.tile_rows) * static_cast<double>(p.tile_columns) *
                      static_cast<double>(p.part_depth),
               bytes =
                   static_cast<double>(p.tile_columns * element_bytes) * static_cast<double>(p.part_depth);
  const double group = std::min(work_of_unit_group / work, bytes_of_unit_group / bytes);
  p.units_of_chunk = static_cast<std::int64_t>(std::clamp(group, 1.0, static_cast<double>(p.units)));
  return p;
}

std::int64_t StripPlan::few_room() const {
  return packs_few ? whole_lines(tile_rows * whole_lines(step)) : 0;
}
// Not a power of two: columns of it would evict each other.
std::int64_t StripPlan::row_of_packed_many() const { return whole_lines(tile_columns) + 16; }
std::int64_t StripPlan::many_room() const {
  if (packed_before) return 0;
  return panel_columns ? step * panel_columns : packs_many ? step * row_of_packed_many() : 0;
}
std::int64_t StripPlan::turning_room() const {
  const bool turns_many = (packs_many || (panel_columns && !packed_before)) && !many.depth_lies_apart,
             turns_few = packs_few && few.depth_lies_apart;
  const std::int64_t of_many = turns_many ? rows_turned * whole_lines(step) : 0;
  const std::int64_t of_few = !turns_few      ? 0
                              : panel_columns ? rows_turned * whole_lines(tile_rows)
                              : along         ? whole_lines(step * rows)
                                              : 0;
  return std::max(of_many, of_few);
}
std::int64_t StripPlan::sums_room() const {
  return in_place || parts > 1 ? 0 : tile_rows * whole_lines(tile_columns);
}
std::int64_t StripPlan::partial_sums() const {
  return parts > 1 ? units * tile_rows * whole_lines(tile_columns) : 0;
}

}  // namespace fuse::runtime::cpu
