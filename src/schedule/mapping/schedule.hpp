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
#include "schedule/segments/segment.hpp"
#include "target/target.hpp"

namespace fuse::schedule {

/// One launch of a segment.
struct KernelSchedule {
  enum class Role : std::uint8_t {
    whole,
    partial,      ///< parts of results, or of columns beside all that is made of rows
    combine,      ///< what is made of those parts; behind the last pass of a split row, all that is left
    cooperative,  ///< the others, one behind the other: AStitch's global scheme
  };
  Role role = Role::whole;
  Dim results{};  ///< rows of the loops; where nothing is reduced or scanned, elements
  Dim reduced{};  ///< elements that each combines; 1 where nothing is
  Dim tiles{};    ///< what a block does at a time; the grid takes them in turns
  Dim grid{};     ///< blocks
  int block_threads = 256;
  int vector = 1;  ///< Choices', of launches that walk what the segment reads
  /// Symbols that the kernel tests: where one is no multiple of the vector, its threads walk one element at a
  /// time (without_vectors).
  std::vector<Dim> tested{};
  DType index_type = i64;
  int cluster = 1;            ///< blocks of a cluster; 1: none
  int registers = 0;          ///< Choices'
  int min_blocks_per_sm = 1;  ///< that a multiprocessor is to hold at a time (occupancy_target.hpp)
  std::size_t phase = 0;      ///< of the segment
  std::size_t section = 0;    ///< of the phase, which the launch is; a cooperative kernel runs all
  Nest nest{};  ///< its loops; none of a cooperative kernel, which has those of its launches in turns
};

/// How a phase runs as a kernel of its own.
struct PhaseSchedule {
  Phase computes{};
  Choices choices{};
  std::vector<Section> sections{};
  std::vector<KernelSchedule> kernels{};  ///< one for each section; then what joins them
  std::vector<ScratchArray> scratch{};
  /// What threads hold of a row from pass to pass; each walks `trips` elements of it, and keeps the state of
  /// columns for each. 0: in no fixed number, so that what is held lies in shared memory.
  std::vector<CachedValue> cached{};
  int elements_per_thread = 0;
  std::vector<ir::NodeId> ahead{};         ///< inputs of which threads load the next row
  std::vector<RowInvariant> invariants{};  ///< that registers keep
};

struct Schedule {
  Segment segment{};
  KernelChoices choices{};
  std::vector<PhaseSchedule> phases{};  ///< one for each phase of the segment
  /// The launches of all phases, then the one that joins them, if there is one.
  std::vector<KernelSchedule> kernels{};
  int blocks_per_sm = 1;  ///< of the cooperative kernel: that must have a place on a multiprocessor at a time
  std::vector<SliceStart> starts{};     ///< of slices, that are arguments
  std::vector<ScratchArray> scratch{};  ///< of all phases, in order
};

/// Of a phase whose blocks share rows behind grid barriers: groups of them that wait for each other alone,
/// each with a counter of its own; 0 where that is all blocks, or none.
std::int64_t row_groups(const PhaseSchedule&);
/// Counters of the cooperative kernel: one of all blocks, then those of the phases' groups.
std::int64_t barrier_counters(const Schedule&);

inline constexpr int tile_columns = 32;      ///< results side by side in a block, at most
inline constexpr int fewest_tile_lanes = 8;  ///< whose values of four bytes are what memory moves at a time
inline constexpr int most_cached =
    32;  ///< registers of a thread: half of what it has at half of the occupancy

/// Results side by side in a tile: as many as leave a tile to each of so many blocks, `fewest` or more.
int tile_lanes(const Dim& results, std::int64_t blocks, int fewest);
/// 32-bit registers that an element of all columns' state takes.
int column_words(const ir::Graph&, const std::vector<Stage>&);
/// Whether threads can keep the columns of their elements in registers.
bool columns_fit(const ir::Graph&, const Phase&, const Choices&);
/// Whether the largest block's threads can keep these reductions over columns, beside what they hold.
bool can_keep_columns(const ir::Graph&, const std::vector<ir::NodeId>& reductions, const Target&);
/// Whether the stages of the phase, more than one, walk rows that several blocks share.
bool splits_stages(const Phase&, const Choices&);
/// What a block combines its warps' parts of reductions in.
std::int64_t shared_bytes(const ir::Graph&, const Phase&, const Choices&);
/// Of all phases together.
std::int64_t shared_bytes(const ir::Graph&, const Segment&, const KernelChoices&);
/// The launches of a phase as a kernel of its own, their index types left open.
std::vector<KernelSchedule> launches(const ir::Graph&, const Phase&, const Choices&);
/// The same where vectors divide nothing: a thread takes one element at a time, and blocks as many as before.
PhaseSchedule without_vectors(PhaseSchedule);
/// Pure: same arguments, same schedule. The segment is a kernel segment; the choices fit it.
Schedule make_schedule(const ir::Graph&, const Segment&, const KernelChoices&, const Target&,
                       const analysis::Facts& facts = analysis::Facts());
std::string print(const ir::Graph&, const Schedule&);
/// "r:grid c:serial c:warp8 c:lane32"; a cooperative kernel has those of the launches that it joins.
std::string loops_text(const KernelSchedule&);
/// Why no kernel can run the segment so; empty: one can. For choices that nobody in the compiler made.
std::string misfit(const ir::Graph&, const Segment&, const KernelChoices&, const Target&);
/// Throws an internal Error unless launches fit the target and the nests fit the phases.
void verify(const ir::Graph&, const Schedule&, const Target&);

}  // namespace fuse::schedule
