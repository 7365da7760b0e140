// Choices: every open decision of a kernel, as one printable record. Choosers make it (chooser.hpp), and
// make_schedule turns it into launches. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <string>
#include <vector>

#include "schedule/nest/nest.hpp"

namespace fuse::schedule {

/// Every open decision of one phase: printable, comparable, part of the kernel's key.
struct Choices {
  /// The loops over rows 'r' and their elements 'c', or over a transpose's tiles (nest_rules.hpp). Choosers
  /// begin with a list of usual_nests.hpp.
  std::vector<Split> splits{};
  /// The blocks of the cooperative kernel that runs all sections; 0: each section is a launch.
  int blocks = 0;
  bool online_softmax = false;  ///< sums of exponentials share the pass of their maximum (online_softmax.hpp)
  /// Reductions across the rows are walked row by row, by blocks that share the rows (staged.hpp).
  bool across = false;
  int register_cache = 0;  ///< 32-bit registers in which a thread may cache elements (row_cache.hpp)
  /// Registers cache what was loaded, two elements of 16 bits in each; every pass computes the rest again.
  bool packed = false;
  /// Elements of a row that the shared memory of a block caches, where registers cache none (row_cache.hpp);
  /// a multiple of the vector, or, in clusters, of what a block takes in a step.
  int shared_cache = 0;
  /// Accumulators per value that a row is reduced to: the elements of a thread's vector go to them in turns,
  /// and they are combined after the walk.
  int accumulators = 1;
  bool ahead = false;         ///< threads load the next row during this one (row_to_row.hpp)
  bool invariants = false;    ///< registers keep what is the same in each row (row_to_row.hpp)
  bool columns_once = false;  ///< a block computes costly columns once, in shared memory (costly_columns.hpp)
  /// Registers per thread that the kernel is compiled for: with fewer, a multiprocessor holds more blocks. 0:
  /// as many as each of 1024 threads on a multiprocessor can have (occupancy_target.hpp).
  int registers = 0;
  bool operator==(const Choices&) const = default;
  std::string to_string() const;

  int block_threads() const;  ///< threads per block
  int vector() const;         ///< elements that a thread walks side by side (vector_width.hpp)
  /// Blocks that leave partials: those that share a row, or else those that take the rows in turns.
  int blocks_per_row() const;
  int cluster() const;  ///< blocks per cluster, which share a row; 1: there are no clusters
  Choices& set(char dim, Level level, std::int64_t units);  ///< with_units of usual_nests.hpp
};

/// The decisions of a kernel: those of each phase. The blocks of all phases have one size. It is never empty.
/// With several phases at most one of `blocks`, `slices` and `tile` is set; with none of them, phases lie
/// side by side.
struct KernelChoices {
  std::vector<Choices> phases{};
  /// With several phases: blocks of the kernel that runs them one after another, with grid barriers between.
  int blocks = 0;
  /// With several phases: slices that each block does of all of them, one phase after another (slices.hpp).
  int slices = 0;
  /// With several element-wise phases: the elements of the last one that each block does, along each dim
  /// (halo_tiles.hpp).
  std::vector<int> tile{};
  int block_threads() const { return phases.front().block_threads(); }
  bool operator==(const KernelChoices&) const = default;
  std::string to_string() const;
};

/// Whether a block has a tile of two dims, instead of rows.
bool walks_tiles(const Choices&);
/// Whether threads walk the elements of rows; else nothing is reduced or scanned.
bool walks_elements(const Choices&);
/// Whether several blocks share each row.
bool splits_rows(const Choices&);
/// Whether what blocks left of a row is more than the lanes of a warp take at a time, so that all warps of
/// the row share it.
bool warps_take_partials(const Choices&);
/// The rows that a block walks at a time.
int rows_at_once(const Choices&);
/// The elements of a row that its threads walk in one step.
std::int64_t step_elements(const Choices&);
/// The elements of the longest row that each thread walks; 0 where that is not known, beyond 31 bits, or far
/// from what is usual.
std::int64_t elements_per_thread(const Dim& reduced, const Choices&);

}  // namespace fuse::schedule
