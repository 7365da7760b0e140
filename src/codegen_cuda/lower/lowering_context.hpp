// A kernel under construction, and what fills it. SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "codegen_cuda/lower/emit_value.hpp"
#include "codegen_cuda/lower/kernel_builder.hpp"
#include "ir/graph/ir_graph.hpp"
#include "schedule/mapping/schedule.hpp"

namespace fuse::codegen {

constexpr int warp_size = 32;

/// Where a thread is.
struct ThreadIndex {
  kernel::Index block{}, warp{}, lane{};
};

/// What is done beside the turns of a thread whose block stays.
struct Turns {
  std::function<void(const ThreadIndex& first)> before{};
  /// Called at the start of each turn, with the thread's position in the next one, which may be after the
  /// last; none where there is one turn.
  std::function<void(const ThreadIndex& at, const std::optional<ThreadIndex>& next)> start{};
};

/// What a block has of a phase in a kernel of halo tiles: a box of elements, of which some may lie outside of
/// the value.
struct BlockTile {
  Coordinates first{};         ///< the coordinates of the first element; before 0 in dims with a halo
  std::vector<Dim> extents{};  ///< of the tile with its halo
};

struct Lowering {
  const ir::Graph& graph;
  const schedule::PhaseSchedule& phase;
  const schedule::KernelSchedule& launch;
  const schedule::Section& section;  ///< the section that the launch is
  KernelBuilder& builder;
  ValueEmitter& elements;
  std::function<Dim(const Dim&)> rename;             ///< the graph's symbols become the kernel's
  std::map<ir::NodeId, kernel::BufferId> outputs{};  ///< the buffers of what the launch stores
  std::vector<kernel::BufferId> scratch{};           ///< the phase's arrays, in order
  Dim results{}, reduced{};                          ///< KernelSchedule's, by the kernel's names
  Dim blocks{};  ///< blocks of the launch, or of the kernel that runs several
  /// In a kernel of several launches, the thread, whose block takes every n-th block of the launch.
  std::optional<ThreadIndex> cooperative{};
  /// The barrier of such a kernel: blocks that share a row wait for each other.
  std::function<void()> row_barrier{};
  /// In a regional kernel of slices, the number of the block. The launch's results are those of one block,
  /// and follow the results of the blocks before it.
  std::optional<kernel::Index> slice{};
  std::optional<BlockTile> tile{};  ///< of this phase

  ir::NodeId root() const { return phase.computes.root; }
  /// Stores the element of a result of the phase that has this number in row-major order.
  void store(ir::NodeId result, const kernel::Index& element, kernel::VarId value) const;
  /// The number, among all results, of the launch's result `own`, where the launch has `all`.
  kernel::Index among_all(const kernel::Index& own, const Dim& all) const {
    return slice ? *slice * all + own : own;
  }
  std::vector<Dim> renamed(std::vector<Dim> dims) const;
  void parallel(kernel::Parallel, const std::string& name, const Dim& extent,
                const std::function<void()>& fill) const;
  /// What a thread does: loops over the launch's blocks, called `block`, and over warps and lanes.
  void threads(const std::string& block, const std::function<void(const ThreadIndex&)>& fill,
               const Turns& beside = {}) const;
  kernel::Index bind(const std::string& name, const kernel::Index& value, const Dim& extent) const;
  /// Calls `fill` for each element of group `number` of those that a thread walks side by side, with its
  /// position in the group and its own number. Later passes make one access of these where they can.
  void side_by_side(
      const kernel::Index& number,
      const std::function<void(const kernel::Index& which, const kernel::Index& element)>& fill) const;
  /// The coordinates of an element of a reduction's or a scan's operand: number `inner` of those that result
  /// `outer` walks.
  Coordinates operand_coordinates(const schedule::LoopShape&, const kernel::Index& outer,
                                  const kernel::Index& inner) const;
};

/// One thread per element; values of the same dims side by side.
void lower_elements(Lowering&);
/// One block per tile of two dims: what is transposed goes through its shared memory.
void lower_tiles(Lowering&);
/// A warp, a block or a column of a block per row: all stages of the segment over it.
void lower_rows(Lowering&);
/// A warp or a thread per row of a cumulative sum.
void lower_scan(Lowering&);

}  // namespace fuse::codegen
