// RowLoops: the loops of a reduction and of all stages that share them.
//
//   row_loops.cpp         who walks a row: a warp, a block, a tile of columns
//   row_exchange.cpp how threads combine what they have of a value
//   row_partials.cpp    rows that several blocks share
//   column_state.cpp  what is reduced across the rows
//   row_walk.cpp     the walk of a row: its elements, what is cached of them, what is stored
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <optional>
#include <vector>

#include "codegen_cuda/lower/lowering_context.hpp"
#include "codegen_cuda/lower/nest_position.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::codegen {

class RowLoops {
 public:
  explicit RowLoops(Lowering& to);
  void run();

 private:
  using Index = kernel::Index;
  using IndexLess = kernel::IndexLess;
  using VarId = kernel::VarId;
  using BufferId = kernel::BufferId;
  using ReductionId = kernel::ReductionId;
  using NodeId = ir::NodeId;
  using Stage = schedule::Stage;

  /// The thread's share of a row.
  struct Walk {
    Index row{}, first{};
    Dim step{};
    std::vector<IndexLess> present{};  ///< holds where the block has rows: the same for all of its threads
    std::vector<IndexLess> takes{};    ///< holds, besides, where the block takes what others left
    std::vector<IndexLess> inside{};   ///< holds where the thread has a row
    std::vector<IndexLess> writer{};   ///< holds for one thread per row
    std::vector<IndexLess> leader{};   ///< holds for one thread of a row in each block
    Index part{};                      ///< where it leaves its partial results, one row at a time
    Index share{};                     ///< its block's number among those that share the row
    Index slot{};                      ///< the row's number among those that the block walks at a time
  };
  struct Running {
    Stage stage{};
    ReductionId reduction = 0;
    std::vector<VarId> state{};
    /// While the thread walks, its states of all rows side by side, or of all accumulators of a row; then,
    /// the number of this row among rows side by side.
    std::vector<BufferId> states{};
    int which = 0;
    NodeId root() const { return stage.root; }
  };
  /// A reduction over columns, whose state a thread has for each element of a row that it walks.
  struct Column {
    NodeId root = 0;
    ReductionId reduction = 0;
    std::vector<BufferId> state{};  // a thread's own, by components
    std::size_t scratch = 0;        // where its components begin
  };
  /// Makes each state the row's total, in all threads that have the row.
  using Combiner = std::function<void(std::vector<Running>&)>;
  /// A group of elements of the row that lie side by side, and an element of one.
  struct Group {
    Index trip{}, number{};
    IndexLess inside{};  ///< holds where the row has it
  };
  using Visit = std::function<void(const Index& trip, const Index& c)>;
  /// The locations of the components of a reduction's state.
  using StateBuffers = std::vector<BufferId>;
  /// What part `part` has left for the i-th of the reductions that are combined.
  using LoadPartial = std::function<std::vector<VarId>(std::size_t i, const Index& part)>;
  /// The threads that share a value and take its partial results in turns: this one's number, and how many
  /// there are. They lie in a warp, `stride` lanes apart. `inside` holds where there is a value.
  struct Takers {
    Index first{};
    int count = 1;
    int stride = 1;
    std::vector<IndexLess> inside{};
  };

  // row_loops.cpp
  // ----------------------------------------------------------------------------------------------
  /// Where the thread stands in the nest. Its row may be after the last one.
  Walk walk_of(const ThreadIndex& at) const;
  /// Where threads of a block have different rows, those without one take part in what all do, and load and
  /// store nothing.
  void mask_row(Walk& walk) const;
  /// The walk with its row's number among those of all blocks; what guards it stays.
  Walk among_all(Walk walk) const;
  void masked(const Walk& walk, const std::function<void()>& fill);
  /// The lanes of a warp that are neighbours walk one row; else they have a row each.
  bool neighbours_share_row() const;
  /// No two blocks share a row.
  void by_rows();
  static bool shares_rows(const schedule::KernelSchedule& launch);
  static bool keeps_elements(const schedule::KernelSchedule& launch);
  /// The walk of one of the rows side by side.
  Walk walk_of_row(const Walk& walk, int which) const;
  Index row_of(const Walk& walk, const Running& running) const {
    return walk_of_row(walk, running.which).row;
  }
  /// Each pass walks the row once; what it reduces, the next ones have.
  void passes(const Walk& walk, const Combiner& combine);

  // row_exchange.cpp --------------------------------------------------------------------------------------
  // Wherever partial results of a value are left, in shared memory of the block or the cluster or in global
  // memory, the exchange is this: each writer puts its state, a barrier of that level, the threads that share
  // the value take the partial results in turns, and a butterfly combines these threads.
  void combine_lanes(const std::vector<Running>& running, int lanes = warp_size, int stride = 1);
  /// Combines what the threads of a block have of a row, as the nest lays the row over them.
  void combine(const ThreadIndex& at, std::vector<Running>& running);
  /// Combines in a block that shares a value: each warp combines its lanes, then every warp combines the
  /// warps.
  void combine_block(const ThreadIndex& at, std::vector<Running>& running);
  /// Combines in a block that has several values, each shared by several warps.
  void combine_values(const ThreadIndex& at, std::vector<Running>& running);
  /// The lanes that share a value.
  Takers lanes_of_value(const ThreadIndex& at) const;
  void take_in_turns(const std::vector<Running>& running, const char* name, int parts, const Takers& takers,
                     const LoadPartial& load);
  /// Each of the takers has what it took alone.
  void take_own(const std::vector<Running>& running, const char* name, int parts, const Takers& takers,
                const LoadPartial& load);
  void take(const std::vector<Running>& running, const LoadPartial& load, const Index& part);
  /// Takes what `parts` blocks left of a row, in all of its threads: by the lanes of each warp, or, where
  /// they are fewer than the partial results, by all threads that the row has in the block.
  void take_partials_of_blocks(const ThreadIndex& at, const Walk& walk, std::vector<Running>& running,
                               const LoadPartial& load);
  /// The state of the value `slot`, where warps left the states of `values` values side by side.
  LoadPartial of_value(const std::vector<StateBuffers>& shared, const Index& slot, int values);
  void declare_totals(std::vector<Running>& running);
  std::vector<StateBuffers> shared_states(const std::vector<Running>& running, int elements);
  StateBuffers scratch_state(const Running& running) const;
  void put(const std::vector<StateBuffers>& buffers, const Index& at, const std::vector<Running>& running);
  void put(const StateBuffers& buffers, const Index& at, const Running& running);
  /// `rank` is that of the block in the cluster whose shared memory it is.
  std::vector<VarId> load_state(const StateBuffers& buffers, const Index& at,
                                const std::optional<Index>& rank = std::nullopt);

  // row_turns.cpp
  // ------------------------------------------------------------------------------------------
  /// What threads load before the first row, and of the next one, where blocks take rows in turns.
  Turns beside_turns();
  void load_invariants(const ThreadIndex& at);
  /// The threads of a block compute costly columns in turns, and all of them read these then.
  void compute_columns(const ThreadIndex& at);
  void load_next_row(const ThreadIndex& at);
  /// What was loaded of this row moves to where its walks take it from.
  void take_next_row(const ThreadIndex& at);
  /// Calls `fill` with the trip and position of each element of the row at `at` that the thread walks.
  void each_own_element(const ThreadIndex& at, const std::string& row,
                        const std::function<void(const Index& row, const Index& trip, const Index& c)>& fill);
  /// Keeps arrays of elements below 4 bytes packed.
  void keep_packed(const std::map<NodeId, BufferId>& arrays);
  /// Takes for an element of the walk what is in registers since an earlier row.
  void keep_loaded(const Coordinates& at, const Index& trip);
  BufferId array_of_trips(const std::string& name, NodeId value);

  // row_partials.cpp
  // -----------------------------------------------------------------------------------------
  /// Several blocks per row: each of them combines what one pass leaves of it before the next pass.
  void in_sections();
  /// All passes in one cooperative kernel: as many rows at a time as all blocks have partial results for.
  void in_sections_together();
  /// The blocks of a row are a cluster: each leaves its partial results in its own shared memory, where all
  /// read them.
  void by_cluster();
  std::vector<Stage> stages_of_pass(int pass) const;
  /// What earlier sections left of the row is combined in the same order wherever it is taken, and all
  /// threads have the totals.
  void take_partials(const ThreadIndex& at, const Walk& walk, std::vector<Running> totals);
  void finish_partials(const Walk& walk, const std::vector<Running>& totals);
  /// Walks the block's part of the row; all of its threads have what it reduced that to.
  std::vector<Running> walk_part(const ThreadIndex& at, const Walk& walk, const std::vector<Stage>& stages);
  void walk_section(const ThreadIndex& at, const Walk& walk, const schedule::Section& section);

  // column_state.cpp
  // ---------------------------------------------------------------------------------------
  int reducing_passes() const;
  /// The rows of a block that stays, or of a warp of it.
  void each_row(const ThreadIndex& at, Walk walk, const std::function<void(const Walk&)>& fill);
  void clear_columns();
  /// state of the element's column = combine(state, element)
  void accumulate_column(const Column& column, const Index& row, const Index& c, const Index& trip);
  std::vector<VarId> load_state(const Column& column, const Index& trip);
  void store_partial(const Column& column, const Index& part, const Index& c,
                     const std::vector<VarId>& state);
  /// Stores in a block whose threads share a row: each has columns of its own.
  void store_columns(const Walk& walk);
  /// Stores in a block that has several rows: the threads of the first combine what those of all have.
  void store_rows_columns(const ThreadIndex& at, const Walk& walk);

  // row_walk.cpp
  // ------------------------------------------------------------------------------------------
  /// The elements that it walks are partial results of others.
  bool combines_partials() const;
  std::vector<Stage> stages_of_launch() const;
  /// The groups that a thread walks, in a number known to the compiler.
  void each_group(const Walk& walk, const std::function<void(const Group&)>& fill);
  void each_element(const Group& group, const Visit& visit);
  ReductionId reduction_of(const Stage& stage);
  Running declare(const Stage& stage, const char* name);
  /// Declares what the stages reduce to, for each row side by side.
  std::vector<Running> declare_each_row(const std::vector<Stage>& stages, const char* name);
  /// The states of the stages that reduce, for a walk; and after it, for each row, in one accumulator.
  std::vector<Running> declare_for_walk(const std::vector<Stage>& stages);
  std::vector<Running> each_row_of(const std::vector<Running>& walked);
  void walk_row(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running);
  /// Stores a value of each row side by side, made of that row's totals.
  void store_rows_side_by_side(const Walk& walk, NodeId root);
  void plain_loop(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running);
  /// The index of the element in the block's shared memory; those of a group are side by side.
  Index shared_index(const Walk& walk, const Group& group, const Index& which) const;
  /// Holds where shared memory has the group; none where it has all of the row.
  std::vector<IndexLess> is_shared(const Group& group) const;
  void guarded(const std::vector<IndexLess>& conditions, const std::function<void()>& fill);
  /// The group's elements of what earlier passes left there, in registers; elements after its end are
  /// computed again.
  std::map<NodeId, BufferId> take_shared(const Walk& walk, const Group& group, int pass);
  /// Where the pass leaves a group's elements: shared memory, or where it has not all of the row, an array of
  /// the thread's, which leave_shared copies.
  std::map<NodeId, BufferId> arrays_to_leave(const Group& group, int pass);
  void leave_shared(const Walk& walk, const Group& group, const std::map<NodeId, BufferId>& arrays);
  /// The thread's own elements of a group.
  BufferId own_array(NodeId node);
  /// Goes trip by trip, so that what is cached has a number known to the compiler.
  void unrolled_loop(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running);
  void visit(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running,
             const Index& c, const Index& trip, const Index& which = 0);
  /// Computes before the loop what it would repeat for each element though it is the same for all of the row.
  void compute_row_values(const Walk& walk, const std::vector<Stage>& stages);
  /// A broadcast that repeats along all dims that are reduced.
  bool same_for_row(const ir::Node& node) const;
  Coordinates row_coordinates(NodeId node, const Index& row) const;
  void store_element(NodeId root, const Index& row, const Index& c);
  /// state = combine(state, element c of the row)
  void accumulate(const Running& running, const Index& row, const Index& c, const Index& which);
  void finish(const Walk& walk, const Running& running);
  /// What the row was reduced to, for all that comes after.
  VarId define_total(const Walk& walk, const Running& running);
  void store_row(const Walk& walk, NodeId root, VarId value);

  /// The dims of the nest: rows, and the elements of a row.
  char kept() const { return nest_.dims[0].name; }
  char walked() const { return nest_.dims[1].name; }
  /// Rows that a block has at a time.
  int values() const {
    return units_of(nest_, kept(), schedule::Level::warp) * units_of(nest_, kept(), schedule::Level::lane);
  }
  int blocks_per_row() const { return to_.phase.choices.blocks_per_row(); }
  int vector() const { return units_of(nest_, walked(), schedule::Level::vector); }
  /// Groups of rows side by side.
  Dim rows() const { return to_.results / rows_side_by_side(); }
  int rows_side_by_side() const { return units_of(nest_, kept(), schedule::Level::vector); }
  /// The accumulators of each reduction, which the elements of a vector go to in turns.
  int accumulators() const { return std::min(vector(), to_.phase.choices.accumulators); }
  int states_of_walk() const { return std::max(rows_side_by_side(), accumulators()); }
  Dim groups() const { return to_.reduced / vector(); }
  int shared_cache() const { return to_.phase.choices.shared_cache; }

  Lowering& to_;
  KernelBuilder& builder_;
  std::vector<Stage> stages_;
  const NodeId dominant_;
  const schedule::LoopShape shape_;
  const schedule::Nest nest_;  // the nest of one turn, where blocks take rows in turns
  const int warps_;
  const int elements_per_thread_;                                // 0: loops of no fixed length
  std::map<NodeId, BufferId> local_{}, shared_{};                // the arrays of cached values
  std::map<NodeId, BufferId> next_{}, current_{}, invariant_{};  // what is loaded for several turns
  std::vector<Column> columns_{};                                // the columns whose state this launch keeps
  std::vector<Running> totals_{};  // the totals so far, for each row side by side
};

}  // namespace fuse::codegen
