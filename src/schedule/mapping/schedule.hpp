// Schedule: how a segment runs. make_schedule is pure; every open decision is in KernelChoices.
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "analysis/facts.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/row_cache.hpp"
#include "schedule/mapping/row_to_row.hpp"
#include "schedule/mapping/section.hpp"
#include "schedule/mapping/slice_starts.hpp"
#include "schedule/nest/nest.hpp"
#include "schedule/regional/halo_tiles.hpp"
#include "schedule/regional/slices.hpp"
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// One launch of a segment.
struct KernelSchedule {
  enum class Role : std::uint8_t {
    whole,
    partial,      ///< makes partial results; with columns, also all that is made from rows
    combine,      ///< makes results from those; after the last pass of a split row, all the rest
    cooperative,  ///< runs the others one after the other: AStitch's global scheme
    regional,     ///< runs the launches of its phases one after the other, each block its part of them
    horizontal,   ///< runs the launches of its phases, each by a range of its blocks, in order
  };
  Role role = Role::whole;
  Dim results{};  ///< rows of the loops, or elements where nothing is reduced or scanned
  Dim reduced{};  ///< elements that each result combines; 1 where nothing is combined
  Dim tiles{};    ///< what a block does at a time; the grid takes them in turns
  Dim grid{};     ///< blocks
  int block_threads = 256;
  int vector = 1;  ///< that of Choices, for launches that walk what the segment reads
  /// Symbols that the kernel tests: where one is no multiple of the vector, its threads walk one element at a
  /// time (without_vectors).
  std::vector<Dim> tested{};
  DType index_type = i64;
  int cluster = 1;            ///< blocks per cluster; 1: none
  int registers = 0;          ///< that of Choices
  int min_blocks_per_sm = 1;  ///< blocks that a multiprocessor should hold at a time (occupancy_target.hpp)
  std::size_t phase = 0;      ///< phase of the segment
  std::size_t section = 0;    ///< section of the phase that the launch runs; a cooperative kernel runs all
  Nest nest{};                ///< its loops; empty for a kernel that runs the loops of several launches
};

/// How a phase runs as a kernel of its own.
struct PhaseSchedule {
  Phase computes{};
  Choices choices{};
  std::vector<Section> sections{};
  /// One per section, then the cooperative kernel, if any. In a regional kernel, what a block does of the
  /// phase: `results` are those of its slices, or of its tile with the halo.
  std::vector<KernelSchedule> kernels{};
  std::vector<ScratchArray> scratch{};
  Windows windows{};  ///< what a block needs of it around its tile, in a kernel of halo tiles
  /// What threads cache of a row. Each walks `elements_per_thread` elements of it, and keeps the state of
  /// columns for each. 0: the number is not fixed, so that cached values lie in shared memory.
  std::vector<CachedValue> cached{};
  int elements_per_thread = 0;
  std::vector<ir::NodeId> ahead{};         ///< inputs whose next row threads load
  std::vector<RowInvariant> invariants{};  ///< invariants that registers keep
  std::vector<ir::NodeId> columns_once{};  ///< costly columns that a block computes once
};

struct Schedule {
  Segment segment{};
  KernelChoices choices{};
  std::vector<PhaseSchedule> phases{};  ///< one for each phase of the segment
  /// The launches of all phases, then the cooperative kernel that runs them, if there is one. Phases of a
  /// regional or a horizontal kernel have no launches of their own here, only the kernel that runs them.
  std::vector<KernelSchedule> kernels{};
  int blocks_per_sm = 1;  ///< blocks of the cooperative kernel that must fit on a multiprocessor at a time
  std::vector<SliceStart> starts{};     ///< starts of slices that are arguments
  std::vector<ScratchArray> scratch{};  ///< arrays of all phases, in order
  std::vector<BlockValue> in_block{};   ///< values that a regional kernel passes on in shared memory
};

/// For a phase whose blocks share rows across grid barriers, the groups of blocks that wait only for each
/// other, each with a counter of its own; 0 where that is all blocks, or none.
std::int64_t row_groups(const PhaseSchedule&);
/// The counters of the cooperative kernel: one for all blocks, then those of the phases' groups.
std::int64_t barrier_counters(const Schedule&);

inline constexpr int tile_columns = 32;      ///< results side by side in a block, at most
inline constexpr int fewest_tile_lanes = 8;  ///< their values of four bytes are what memory moves at a time
inline constexpr int most_cached =
    32;  ///< registers per thread: half of what it has at half of the occupancy

/// The results side by side in a tile: as many as leave a tile to each of so many blocks, `fewest` or more.
int tile_lanes(const Dim& results, std::int64_t blocks, int fewest);
/// The 32-bit registers that an element of all columns' state takes.
int column_words(const ir::Graph&, const std::vector<Stage>&);
/// Whether threads can keep the columns of their elements in registers.
bool columns_fit(const ir::Graph&, const Phase&, const Choices&, const Target&);
/// Whether the largest block's threads can keep these outer reductions, besides what they cache.
bool can_keep_columns(const ir::Graph&, const std::vector<ir::NodeId>& reductions, const Target&);
/// Whether the stages of the phase, more than one, walk rows that several blocks share.
bool splits_stages(const Phase&, const Choices&);
/// The shared memory in which a block combines its warps' partial results.
std::int64_t shared_bytes(const ir::Graph&, const Phase&, const Choices&);
/// The same for all phases together.
std::int64_t shared_bytes(const ir::Graph&, const Segment&, const KernelChoices&);
/// The launches of a phase as a kernel of its own, their index types left open.
std::vector<KernelSchedule> launches(const ir::Graph&, const Phase&, const Choices&);
/// The same phase for extents that vectors do not divide: a thread takes one element at a time, and blocks as
/// many as before.
PhaseSchedule without_vectors(PhaseSchedule);
/// It is pure: same arguments, same schedule. The segment is a kernel segment; the choices fit it.
Schedule make_schedule(const ir::Graph&, const Segment&, const KernelChoices&, const Target&,
                       const analysis::Facts& facts = analysis::Facts());
std::string print(const ir::Graph&, const Schedule&);
/// "r:grid c:serial c:warp8 c:lane32"; for a cooperative kernel, those of the launches that it runs.
std::string loops_text(const KernelSchedule&);
/// Why no kernel can run the segment in this way; empty if one can. It is for choices from outside the
/// compiler.
std::string misfit(const ir::Graph&, const Segment&, const KernelChoices&, const Target&);
/// Throws an internal Error unless launches fit the target and the nests fit the phases.
void verify(const ir::Graph&, const Schedule&, const Target&);

}  // namespace fuse::schedule
