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
  /// The loops: of rows 'r' and their elements 'c', or of a transpose's tiles (nest_rules.hpp). Choosers
  /// begin with a list of usual_nests.hpp.
  std::vector<Split> splits{};
  /// Of the kernel that runs all sections, whose blocks wait for each other; 0: each section is a launch.
  int blocks = 0;
  bool online_softmax = false;  ///< sums of exponentials in the pass of their maximum (online_softmax.hpp)
  /// Reductions across the rows are walked row by row, by blocks that share the rows (staged.hpp).
  bool across = false;
  int register_cache =
      0;  ///< 32-bit registers in which a thread may hold elements from pass to pass (row_cache.hpp)
  /// Registers hold what was loaded, two elements of 16 bits in each; every pass makes the rest of it again.
  bool packed = false;
  /// Elements of a row that the shared memory of a block holds, where registers hold none (row_cache.hpp); a
  /// multiple of the vector, of clusters of what their block takes in a step.
  int shared_cache = 0;
  /// Of each value that a row is reduced to: the elements of a thread's vector go to so many in turns, which
  /// are combined behind the walk.
  int accumulators = 1;
  bool ahead = false;       ///< threads load the next row while they work on this one (row_to_row.hpp)
  bool invariants = false;  ///< registers keep what is the same in each row (row_to_row.hpp)
  /// Of a thread, for which the kernel is compiled: with fewer, a multiprocessor holds more blocks. 0: as
  /// many as 1024 threads on a multiprocessor leave each (occupancy_target.hpp).
  int registers = 0;
  bool operator==(const Choices&) const = default;
  std::string to_string() const;

  int block_threads() const;  ///< threads of a block
  int vector() const;         ///< elements that a thread walks side by side (vector_width.hpp)
  /// Blocks that leave parts: those that share a row; where none do, those that take the rows in turns.
  int blocks_per_row() const;
  int cluster() const;  ///< blocks of a cluster, which share a row; 1: there are no clusters
  Choices& set(char dim, Level level, std::int64_t units);  ///< with_units of usual_nests.hpp
};

/// The decisions of a kernel: of each phase, whose blocks have one size. Never empty.
struct KernelChoices {
  std::vector<Choices> phases{};
  int blocks = 0;  ///< of several phases: blocks of the kernel that runs them one after another
  int block_threads() const { return phases.front().block_threads(); }
  bool operator==(const KernelChoices&) const = default;
  std::string to_string() const;
};

/// Whether a block has a tile of two dims, which are no rows.
bool walks_tiles(const Choices&);
/// Whether threads walk the elements of rows; else nothing is reduced or scanned.
bool walks_elements(const Choices&);
/// Whether several blocks share a row that none of them walks alone.
bool splits_rows(const Choices&);
/// Whether what blocks left of a row is more than the lanes of a warp take at a time, so that all warps of
/// the row share it.
bool warps_take_partials(const Choices&);
/// Rows that a block walks at a time.
int rows_at_once(const Choices&);
/// Elements of a row that its threads walk in one step.
std::int64_t step_elements(const Choices&);
/// Elements of the longest row that each thread walks; 0 where that is not known, or far from what is usual.
std::int64_t elements_per_thread(const Dim& reduced, const Choices&);

}  // namespace fuse::schedule
