// How a GEMM of the cpu device's own is cut: by its shape alone, so that the bits are those of any number of
// threads.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "runtime/device/backend.hpp"

namespace fuse::runtime::cpu {

/// A matrix of the product, seen as rows x depth: a, or b transposed. `depth` is the k of the GEMM.
struct Side {
  std::int64_t row = 0;           ///< elements from the start of one row in memory to that of the next
  bool depth_lies_apart = false;  ///< depth x rows in memory, else rows x depth
  bool is_b = false;

  std::int64_t offset(std::int64_t at_row, std::int64_t at_depth) const {
    return depth_lies_apart ? at_depth * row + at_row : at_row * row + at_depth;
  }
};

/// b as n x k.
Side side_of_b(const GemmDesc& desc);

/// The rows of one matrix times a piece of the other one, which is read from memory once for all of them.
struct StripPlan {
  Side few, many;  ///< rows of the result are rows of `few`, or columns of it where b has the fewer rows
  std::int64_t rows = 0, columns = 0, depth = 0;  ///< of the result, seen from `few`
  bool along = false;                             ///< `many` is multiplied along its rows, else across them
  bool packs_few = false, packs_many = false;     ///< a step is copied to f32 in the thread's memory first
  /// `many` is multiplied by panels of so many of its rows, each packed before it meets the rows of the tile;
  /// 0: not so.
  std::int64_t panel_columns = 0;
  bool packed_before = false;  ///< what packed_bytes_of counts is given in the place of b
  bool in_place = false;       ///< sums are made where the result lies
  std::int64_t tile_rows = 0, tile_columns = 0;
  std::int64_t down = 0, across = 0, matrices = 0;  ///< tiles of a matrix, and matrices
  std::int64_t part_depth = 0, parts = 1;  ///< k is cut where there are few tiles; parts are added in order
  std::int64_t step = 0;                   ///< of k, for what is copied
  std::int64_t units = 0, units_of_chunk = 1;  ///< a unit: a part of a tile

  /// In floats, of each thread.
  std::int64_t few_room() const, many_room() const, turning_room() const, sums_room() const;
  std::int64_t room() const { return few_room() + many_room() + turning_room() + sums_room(); }
  /// In floats, of all parts of all tiles; 0 for one part.
  std::int64_t partial_sums() const;
  std::int64_t row_of_packed_many() const;
};

/// Up to whole lines of a cache, in floats.
constexpr std::int64_t whole_lines(std::int64_t n) { return (n + 15) / 16 * 16; }

/// Rows of `many` that are widened before they are turned.
constexpr std::int64_t rows_turned = 16;

/// The most rows, or columns, of a result that is thin: its time is that of reading the other matrix.
constexpr std::int64_t most_thin_rows = 16;

/// Whether panels are as fast as OpenBLAS, if that is there: of the types alone, so that one panel serves all
/// products.
bool takes_panels(const GemmDesc& desc, bool openblas, std::int64_t panel_columns);

/// Whether f32, f16 or bf16 are multiplied by strips, given whether OpenBLAS is there. `panel_columns`: of
/// the kernels.
bool takes_strips(const GemmDesc& desc, bool openblas, std::int64_t panel_columns);

/// Whether it is faster when b was packed: very few rows read b as fast as it lies.
bool prefers_panels(const GemmDesc& desc);

/// Of one with products of f32, f16 or bf16.
StripPlan strip_plan_of(const GemmDesc& desc, std::int64_t panel_columns);

/// Panels of all columns for a piece of k, back to back; then those of the next piece. The last panel of each
/// is filled up with zeros. Of b alone, so that products of any number of rows share them.
struct PanelLayout {
  std::int64_t depth = 0, columns = 0, panel_columns = 0;  ///< of b, seen as k x n, and of a panel
  std::int64_t piece = 0;                                  ///< of k, at most

  std::int64_t elements() const { return panels() * panel_columns * depth; }
  std::int64_t panels() const { return (columns + panel_columns - 1) / panel_columns; }
  /// Where the panel begins that has (k, column): k begins a piece, `column` a panel.
  std::int64_t offset(std::int64_t k, std::int64_t column) const {
    return k * panels() * panel_columns + column * (piece < depth - k ? piece : depth - k);
  }
};
PanelLayout panel_layout_of(std::int64_t depth, std::int64_t columns, std::int64_t panel_columns);

}  // namespace fuse::runtime::cpu
