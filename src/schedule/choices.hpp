// Choices: every open decision of a kernel, as one printable record. Choosers make it (chooser.hpp), and
// make_schedule turns it into launches. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <fuse/dim.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "schedule/nest.hpp"

namespace fuse::schedule {

/// How results and the elements they reduce are laid over threads.
enum class Mapping : std::uint8_t {
  element,  ///< a thread an element
  tile,  ///< a block a tile of two dims, where what is transposed goes through shared memory (transposed.hpp)
  row_warp,     ///< a warp a result: its lanes walk the reduced elements
  row_block,    ///< a block a result
  column_tile,  ///< some results side by side a block; the threads beside them share the reduced elements
  split,        ///< several blocks a result, which combine their parts in fixed order: see Choices
  scan_warp,    ///< a warp a row of a scan
  scan_thread,  ///< a thread a row of a scan
  nest,         ///< the loops are Choices::splits (nest_rules.hpp)
};
std::string_view to_string(Mapping);

/// Every open decision of one segment: printable, comparable, part of the kernel's key.
struct Choices {
  Mapping mapping = Mapping::element;
  int block_threads = 256;
  int parts = 1;  ///< split: blocks a result; stages of columns: blocks that share the rows
  int hold = 0;   ///< 32-bit registers in which a thread may hold elements from pass to pass (held.hpp)
  /// Of the kernel that joins several launches, with grid barriers between; of one launch: blocks that stay,
  /// and take tiles in turns. 0: there is no such kernel, and a block for each tile.
  int blocks = 0;
  bool cluster = false;  ///< split: the blocks of a row are a cluster, and pass parts on to each other
  int vector = 1;        ///< elements that a thread walks side by side (vector_width.hpp)
  int lanes = 32;        ///< neighbours in a warp: row_warp: threads a row; column_tile: results
  bool online = false;   ///< sums of exponentials in the pass of their maximum (online_sums.hpp)
  /// row_warp, row_block: reductions across the rows are walked row by row, by blocks that share the rows
  /// (staged.hpp).
  bool across = false;
  /// row_warp, row_block, clusters: elements of a row that the shared memory of a block holds, where
  /// registers hold none (held.hpp); a multiple of the vector, of clusters of what their block takes in a
  /// step.
  int shared_hold = 0;
  /// Registers hold what was loaded, two elements of 16 bits in each; every pass makes the rest of it again.
  bool packed = false;
  /// nest: the loops over rows 'r' and their elements 'c'. What stands above of threads, parts, clusters and
  /// vectors is read off them; `blocks` are those of the kernel that joins launches.
  std::vector<Split> splits{};
  bool operator==(const Choices&) const = default;
  std::string to_string() const;
};

/// The decisions of a kernel: of each phase, whose blocks have one size. Never empty.
struct KernelChoices {
  std::vector<Choices> phases{};
  int blocks = 0;  ///< of several phases: blocks of the kernel that runs them one after another
  int block_threads() const { return phases.front().block_threads; }
  bool operator==(const KernelChoices&) const = default;
  std::string to_string() const;
};

/// The loops. `columns`: the stages keep columns, so that blocks take rows in turns (has_columns).
std::vector<Split> splits_of(const Choices&, bool columns = false);
/// Those of a nest; what is no loop is as in `beside`.
Choices nest_choices(std::vector<Split> splits, const Choices& beside = {});
/// The same as a list of splits.
Choices as_nest(const Choices&, bool columns = false);
/// Whether a block has a tile of two dims, which are no rows.
bool walks_tiles(const Choices&);
/// Whether several blocks share a row that none of them walks alone.
bool splits_rows(const Choices&);
/// Whether what blocks left of a row is more than the lanes of a warp take at a time, so that all warps of
/// the row share it.
bool warps_take_parts(const Choices&);
/// Rows that a block walks at a time.
int rows_at_once(const Choices&);
/// Elements of a row that its threads walk in one step.
std::int64_t step_elements(const Choices&);
/// Elements of the longest row that each thread walks; 0 where that is not known, or far from what is usual.
std::int64_t row_trips(const Dim& reduced, const Choices&);

}  // namespace fuse::schedule
