// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>
#include <set>
#include <unordered_set>

#include "codegen_cuda/lowering.hpp"
#include "schedule/shape.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;
using schedule::Stage;

namespace {

class RowLowering {
 public:
  explicit RowLowering(Lowering& to)
      : to_(to),
        builder_(to.builder),
        stages_(stages_of(to.graph, to.schedule.piece, to.launch)),
        dominant_(schedule::dominant(to.graph, to.schedule.piece)),
        shape_(schedule::loop_shape(to.graph, to.graph[dominant_])),
        warps_(to.launch.block_threads / warp_size),
        trips_(keeps_trips(to.launch) ? to.schedule.trips : 0) {
    if (schedule::has_columns(to.schedule.piece)) note_columns();
  }

  void run() {
    for (const schedule::Held& held : to_.schedule.held) {
      const std::string name = to_.graph.value_name(held.node).substr(1);
      const DType dtype = to_.graph[held.node].type.dtype;
      if (trips_ > 0) local_[held.node] = builder_.buffer("h" + name, dtype, Space::local, trips_, true);
      if (shared_hold() == 0) continue;
      const int elements = shared_hold() * schedule::rows_at_once(to_.schedule.choices);
      shared_[held.node] = builder_.buffer("s" + name, dtype, Space::shared, elements, true);
    }
    switch (to_.launch.mapping) {
      case Mapping::row_warp:
        return by_warp();
      case Mapping::column_tile:
        return by_tile();
      case Mapping::split:
        if (to_.launch.cluster > 1) return by_cluster();
        return to_.launch.role == KernelSchedule::Role::joined ? by_parts_together() : by_parts();
      default:
        return by_block();
    }
  }

 private:
  /// What a thread does of a row.
  struct Walk {
    Index row{}, first{};
    Dim step{};
    std::vector<IndexLess> inside{};  ///< holds where the thread has a row
    std::vector<IndexLess> writer{};  ///< holds for one thread a row
    Index part{};                     ///< where it leaves its parts
    Index slot{};                     ///< the row's number of those that the block walks at a time
  };
  struct Running {
    Stage stage{};
    ReductionId reduction = 0;
    std::vector<VarId> state{};
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

  // A warp a row; its lanes walk it and combine by a butterfly.
  void by_warp() {
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Index walker = at.block * warps_ + at.warp, l = at.lane;
      const auto combine = [&](std::vector<Running>& running) { combine_lanes(running); };
      if (!columns_.empty()) {
        clear_columns();
        each_row(walker, to_.rename(to_.launch.tiles) * warps_, [&](const Index& row) {
          passes({.row = row, .first = l, .step = warp_size, .writer = {{l, 1}}}, combine);
        });
        return store_warps_columns(at);
      }
      if (to_.launch.lanes < warp_size) return by_lanes(at);
      const Index row = to_.bind(builder_.unique("row"), walker, to_.results);
      builder_.when({{row, to_.results}}, [&] {
        passes({.row = row, .first = l, .step = warp_size, .writer = {{l, 1}}, .slot = at.warp}, combine);
      });
    });
  }

  // Several rows a warp: some of them may be behind the last, and the warp combines all.
  void by_lanes(const ThreadIndex& at) {
    const int lanes = to_.launch.lanes, rows = warp_size / lanes;
    const Index row =
        to_.bind(builder_.unique("row"), (at.block * warps_ + at.warp) * rows + at.lane / lanes, to_.results);
    const Index l = to_.bind(builder_.unique("l"), at.lane % lanes, lanes);
    const IndexLess inside{row, to_.results};
    passes({.row = row,
            .first = l,
            .step = lanes,
            .inside = {inside},
            .writer = {{l, 1}, inside},
            .slot = at.warp * rows + at.lane / lanes},
           [&](std::vector<Running>& running) { combine_lanes(running, lanes); });
  }

  static bool keeps_trips(const KernelSchedule& launch) {
    if (launch.role == KernelSchedule::Role::joined || launch.cluster > 1) return true;
    return launch.role != KernelSchedule::Role::combine && launch.mapping != Mapping::split;
  }

  // A block a row: each warp combines its lanes, then every warp combines the warps.
  void by_block() {
    const int threads = to_.launch.block_threads;
    to_.threads(builder_.unique(columns_.empty() ? "row" : "b"), [&](const ThreadIndex& at) {
      Walk walk{.row = at.block,
                .first = at.warp * warp_size + at.lane,
                .step = threads,
                .writer = {{at.warp, 1}, {at.lane, 1}},
                .part = at.block};
      const auto combine = [&](std::vector<Running>& running) { combine_block(at, running); };
      if (columns_.empty()) return passes(walk, combine);
      clear_columns();
      each_row(at.block, to_.rename(to_.launch.tiles), [&](const Index& row) {
        walk.row = row;
        passes(walk, combine);
        // With one barrier a row, a thread that hurries on would overwrite what others still read.
        if (reducing_passes() == 1) builder_.append(Barrier{});
      });
      store_columns(walk);
    });
  }

  // Several blocks a row: what one pass leaves of it, each of them combines before the next.
  void by_parts() {
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Walk walk = part_of_row(at, at.block, at.block / parts());
      std::vector<Running> totals;
      for (const Stage& stage : combined_in(to_.graph, to_.schedule.piece, to_.launch))
        totals.push_back(declare(stage, "total"));
      take_parts(at, walk, totals);
      pass_of_part(at, walk, to_.launch.pass);
    });
  }

  // All passes in one kernel: as many rows at a time as all blocks have parts, which wait for each other.
  void by_parts_together() {
    const ThreadIndex& at = *to_.joined;
    const std::int64_t blocks = builder_.kernel.grid.constant(), at_once = blocks / parts();
    const auto fill = [&](const Index& base) {
      Walk walk = part_of_row(at, base * parts() + at.block,
                              to_.bind(builder_.unique("row"), base + at.block / parts(), to_.results));
      if (at_once * parts() < blocks) walk.inside = {{at.block, at_once * parts()}};
      const std::int64_t rows = to_.results.is_constant() ? to_.results.constant() : 0;
      const bool whole = rows > 0 && rows % at_once == 0;
      if (!whole) walk.inside.push_back({walk.row, to_.results});
      std::vector<Stage> reduced;  // by the last pass
      for (int pass = 0; pass <= last_pass(stages_) || !reduced.empty(); ++pass) {
        std::vector<Running> totals;
        if (!reduced.empty()) to_.row_barrier();
        for (const Stage& stage : reduced) totals.push_back(declare(stage, "total"));
        take_parts(at, walk, totals);
        builder_.at(to_.root());
        const auto part = [&] {
          to_.elements.enter_scope();
          pass_of_part(at, walk, pass);
          to_.elements.leave_scope();
        };
        walk.inside.empty() ? part() : builder_.when(walk.inside, part);
        reduced = stages_of_pass(pass);
        std::erase_if(reduced, [](const Stage& stage) { return stage.form != Stage::Form::reduce; });
      }
    };
    to_.elements.enter_scope();
    if (to_.results.is_constant() && to_.results.constant() <= at_once) {
      fill(0);
    } else {
      const std::string base = builder_.unique("base");
      builder_.loop({.name = base, .begin = 0, .end = to_.results, .step = at_once, .body = {}},
                    [&] { fill(Dim::index(base, to_.results)); });
    }
    to_.elements.leave_scope();
  }

  // The blocks of a row are a cluster: each leaves its parts in its own shared memory, where all read them.
  void by_cluster() {
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Walk walk = part_of_row(at, at.block, at.block / parts());
      for (int pass = 0; pass <= last_pass(stages_); ++pass) {
        const std::vector<Stage> stages = stages_of_pass(pass);
        std::vector<Running> running = walk_part(at, walk, stages);
        if (running.empty()) continue;
        const std::vector<SharedState> left = shared_states(running, 1);
        builder_.when({{at.warp, 1}, {at.lane, 1}}, [&] { put(left, 0, running); });
        builder_.append(ClusterBarrier{});
        declare_totals(running);
        take_parts(at, running, [&](const Running& total, const Index& part) {
          const SharedState& shared = left[static_cast<std::size_t>(&total - running.data())];
          std::vector<VarId> incoming;
          for (const BufferId buffer : shared) {
            incoming.push_back(
                builder_.value(builder_.kernel.buffers[buffer].dtype, Load{buffer, 0, {}, part}));
          }
          return incoming;
        });
        finish_parts(walk, running);
      }
      builder_.at(to_.root());
      builder_.append(ClusterBarrier{});  // until then others may read what this block left
    });
  }

  int parts() const { return to_.schedule.choices.parts; }

  Walk part_of_row(const ThreadIndex& at, const Index& part, const Index& row) const {
    const int threads = to_.launch.block_threads;
    const Index number = at.block % parts();
    return {.row = row,
            .first = number * threads + at.warp * warp_size + at.lane,
            .step = threads * parts(),
            .writer = {{number, 1}, {at.warp, 1}, {at.lane, 1}},
            .part = part};
  }

  std::vector<Stage> stages_of_pass(int pass) const {
    std::vector<Stage> stages;
    std::copy_if(stages_.begin(), stages_.end(), std::back_inserter(stages),
                 [&](const Stage& stage) { return stage.pass == pass; });
    return stages;
  }

  /// Every warp combines the parts of the row in the same order, so that every thread has the totals.
  void take_parts(const ThreadIndex& at, const std::vector<Running>& totals,
                  const std::function<std::vector<VarId>(const Running&, const Index& part)>& load) {
    const std::string part = builder_.unique("p");
    builder_.at(totals.front().root());
    builder_.loop({.name = part, .begin = at.lane, .end = parts(), .step = warp_size, .body = {}}, [&] {
      for (const Running& total : totals) {
        builder_.at(total.root());
        const std::vector<VarId> incoming = load(total, Dim::index(part, parts()));
        builder_.append(Combine{total.reduction, total.state, incoming});
      }
    });
    combine_lanes(totals);
  }

  /// Of what earlier passes left in memory.
  void take_parts(const ThreadIndex& at, const Walk& walk, const std::vector<Running>& totals) {
    const auto take = [&] {
      take_parts(at, totals, [&](const Running& total, const Index& part) {
        std::vector<VarId> incoming;
        std::size_t array = scratch_place(to_.graph, to_.schedule.piece, total.root());
        for (const DType dtype : builder_.kernel.reductions[total.reduction].state)
          incoming.push_back(
              builder_.value(dtype, Load{to_.scratch[array++], walk.row * parts() + part, {}}));
        return incoming;
      });
    };
    if (totals.empty()) return;
    walk.inside.empty() ? take() : builder_.when(walk.inside, take);
    finish_parts(walk, totals);
  }

  void finish_parts(const Walk& walk, const std::vector<Running>& totals) {
    for (const Running& total : totals) {
      const VarId value = hold_total(walk, total);
      if (!to_.outputs.contains(total.root())) continue;
      walk.inside.empty() ? store_row(walk, total.root(), value)
                          : builder_.when(walk.inside, [&] { store_row(walk, total.root(), value); });
    }
  }

  /// Walks the block's part of the row; all of its threads have what it reduced that to.
  std::vector<Running> walk_part(const ThreadIndex& at, const Walk& walk, const std::vector<Stage>& stages) {
    std::vector<Running> running;
    for (const Stage& stage : stages) {
      if (stage.form == Stage::Form::reduce) running.push_back(declare(stage, "acc"));
    }
    if (!stages.empty()) walk_row(walk, stages, running);
    if (!running.empty()) combine_block(at, running);
    return running;
  }

  void pass_of_part(const ThreadIndex& at, const Walk& walk, int pass) {
    const std::vector<Running> running = walk_part(at, walk, stages_of_pass(pass));
    for (const Running& each : running) {
      builder_.at(each.root());
      std::size_t array = scratch_place(to_.graph, to_.schedule.piece, each.root());
      builder_.when({{at.warp, 1}, {at.lane, 1}}, [&] {
        for (const VarId state : each.state) builder_.append(Store{to_.scratch[array++], walk.part, state});
      });
    }
  }

  void combine_block(const ThreadIndex& at, std::vector<Running>& running) {
    const auto shared = shared_states(running, warps_);
    combine_lanes(running);
    builder_.when({{at.lane, 1}}, [&] { put(shared, at.warp, running); });
    builder_.append(Barrier{});
    declare_totals(running);
    builder_.when({{at.lane, warps_}}, [&] { take(shared, at.lane, running); });
    combine_lanes(running);
  }

  // 32 rows side by side, a lane each; every warp walks every n-th element of them, then each adds up all
  // warps.
  void by_tile() {
    to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
      const Index column = to_.bind(builder_.unique("column"), at.block * warp_size + at.lane, to_.results);
      const std::vector<IndexLess> inside = {{column, to_.results}};
      passes({.row = column,
              .first = at.warp,
              .step = warps_,
              .inside = inside,
              .writer = {{at.warp, 1}, {column, to_.results}}},
             [&](std::vector<Running>& running) {
               const auto shared = shared_states(running, warps_ * warp_size);
               put(shared, at.warp * warp_size + at.lane, running);
               builder_.append(Barrier{});
               declare_totals(running);
               const std::string other = builder_.unique("w");
               builder_.loop({.name = other, .begin = 0, .end = warps_, .body = {}},
                             [&] { take(shared, Dim::index(other, warps_) * warp_size + at.lane, running); });
             });
    });
  }

  // Columns ----------------------------------------------------------------------------------------------

  /// A partial launch keeps their state; for the combining one they are rows, whose elements are the parts.
  void note_columns() {
    std::size_t next = 0;
    for (Stage& stage : stages_) {
      if (stage.form == Stage::Form::column_reduce) {
        scratch_at_[stage.root] = next;
        next += schedule::reduction_state(to_.graph, stage).size();
      }
      if (to_.launch.role == KernelSchedule::Role::combine) {
        const bool reduces = stage.form == Stage::Form::column_reduce;
        stage = {stage.root, reduces ? Stage::Form::reduce : Stage::Form::row, reduces ? 0 : 1};
      } else if (stage.form == Stage::Form::column_reduce) {
        columns_.push_back({.root = stage.root, .scratch = scratch_at_[stage.root]});
      }
    }
  }

  /// The elements that it walks are parts of what others reduced.
  bool combines_parts() const {
    return to_.launch.role == KernelSchedule::Role::combine && to_.launch.mapping != Mapping::split;
  }

  int reducing_passes() const {
    std::set<int> passes;
    for (const Stage& stage : stages_) {
      if (stage.form == Stage::Form::reduce) passes.insert(stage.pass);
    }
    return static_cast<int>(passes.size());
  }

  /// The rows of a block that stays, or of a warp of it.
  void each_row(const Index& first, const Dim& step, const std::function<void(const Index&)>& fill) {
    const std::string name = builder_.unique("row");
    builder_.loop({.name = name, .begin = first, .end = to_.results, .step = step, .body = {}}, [&] {
      to_.elements.enter_scope();
      fill(Dim::index(name, to_.results));
      to_.elements.leave_scope();
    });
  }

  /// A group of elements that lie side by side, of the row; and an element of one.
  struct Group {
    Index trip{}, number{};
    IndexLess inside{};  ///< holds where the row has it
  };
  using Visit = std::function<void(const Index& trip, const Index& c)>;

  /// The groups that a thread walks, in a number known to the compiler.
  void each_group(const Walk& walk, const std::function<void(const Group&)>& fill) {
    const auto group = [&](const Index& trip) {
      const Index number = to_.bind(builder_.unique(to_.launch.vector == 1 ? "c" : "g"),
                                    walk.first + trip * walk.step, groups());
      fill({trip, number, {number, groups()}});
    };
    const Dim trips = trips_ / to_.launch.vector;
    if (trips.is(1)) return group(0);
    const std::string name = builder_.unique("k");
    builder_.loop({.name = name, .begin = 0, .end = trips, .unrolled = true, .body = {}},
                  [&] { group(Dim::index(name, trips)); });
  }

  void each_element(const Group& group, const Visit& visit) {
    to_.side_by_side(group.number, [&](const Index& which, const Index& c) {
      visit(group.trip * to_.launch.vector + which, c);
    });
  }

  Dim groups() const { return to_.reduced / to_.launch.vector; }

  void clear_columns() {
    for (Column& column : columns_) {
      builder_.at(column.root);
      column.reduction = reduction_of({.root = column.root, .form = Stage::Form::column_reduce});
      const Reduction& reduction = builder_.kernel.reductions[column.reduction];
      for (const DType dtype : reduction.state) {
        const std::string name = builder_.component("col", column.reduction, column.state.size()) +
                                 to_.graph.value_name(column.root).substr(1);
        column.state.push_back(builder_.buffer(name, dtype, Space::local, trips_, true));
      }
    }
    const std::string name = builder_.unique("k");
    builder_.loop({.name = name, .begin = 0, .end = trips_, .unrolled = true, .body = {}}, [&] {
      const Index trip = Dim::index(name, trips_);
      for (const Column& column : columns_) {
        builder_.at(column.root);
        for (std::size_t i = 0; i < column.state.size(); ++i) {
          const Reduction& reduction = builder_.kernel.reductions[column.reduction];
          const DType dtype = reduction.state[i];
          const VarId identity = builder_.value(dtype, reduction.identity[i]);
          builder_.append(Store{column.state[i], trip, identity});
        }
      }
    });
  }

  /// state of the element's column = combine(state, element)
  void accumulate_column(const Column& column, const Index& row, const Index& c, const Index& trip) {
    const NodeId operand = to_.graph[column.root].operands[0];
    std::vector<VarId> incoming = {to_.elements.value(operand, to_.operand_coordinates(dominant_, row, c))};
    builder_.at(column.root);
    if (column.state.size() == 2) incoming.push_back(builder_.value(i64, IndexValue{row}));
    const std::vector<VarId> state = builder_.declare(column.reduction, "acc", load_state(column, trip));
    builder_.append(Combine{column.reduction, state, incoming});
    for (std::size_t i = 0; i < state.size(); ++i) builder_.append(Store{column.state[i], trip, state[i]});
  }

  std::vector<VarId> load_state(const Column& column, const Index& trip) {
    builder_.at(column.root);
    std::vector<VarId> state;
    for (const BufferId buffer : column.state) {
      state.push_back(builder_.value(builder_.kernel.buffers[buffer].dtype, Load{buffer, trip, {}}));
    }
    return state;
  }

  void store_part(const Column& column, const Index& part, const Index& c, const std::vector<VarId>& state) {
    for (std::size_t i = 0; i < state.size(); ++i) {
      builder_.append(Store{to_.scratch[column.scratch + i], part * to_.reduced + c, state[i]});
    }
  }

  /// Of a block whose threads share a row: each has columns of its own.
  void store_columns(const Walk& walk) {
    each_group(walk, [&](const Group& group) {
      builder_.when({group.inside}, [&] {
        each_element(group, [&](const Index& trip, const Index& c) {
          for (const Column& column : columns_) store_part(column, walk.part, c, load_state(column, trip));
        });
      });
    });
  }

  /// Of a block whose warps have rows of their own: the first warp combines what all of them have.
  void store_warps_columns(const ThreadIndex& at) {
    std::vector<Running> running;
    for (const Column& column : columns_)
      running.push_back({{.root = column.root, .form = Stage::Form::column_reduce}, column.reduction, {}});
    const std::vector<SharedState> shared = shared_states(running, warps_ * warp_size);
    each_group({.first = at.lane, .step = warp_size}, [&](const Group& group) {
      each_element(group, [&](const Index& trip, const Index& c) {
        for (std::size_t i = 0; i < columns_.size(); ++i) {
          running[i].state = load_state(columns_[i], trip);
        }
        put(shared, at.warp * warp_size + at.lane, running);
        builder_.append(Barrier{});
        builder_.when({{at.warp, 1}, group.inside}, [&] {
          declare_totals(running);
          const std::string other = builder_.unique("w");
          builder_.loop({.name = other, .begin = 0, .end = warps_, .body = {}},
                        [&] { take(shared, Dim::index(other, warps_) * warp_size + at.lane, running); });
          for (std::size_t i = 0; i < columns_.size(); ++i) {
            builder_.at(columns_[i].root);
            store_part(columns_[i], at.block, c, running[i].state);
          }
        });
        if (trips_ > 1) builder_.append(Barrier{});  // before the next trip overwrites what others still read
      });
    });
  }

  // Rows -------------------------------------------------------------------------------------------------

  /// Each pass walks the row once; what it reduces, the next ones have.
  void passes(const Walk& walk, const Combiner& combine) {
    for (int pass = 0; pass <= last_pass(stages_); ++pass) {
      const std::vector<Stage> stages = stages_of_pass(pass);
      std::vector<Running> running;
      for (const Stage& stage : stages) {
        if (stage.form == Stage::Form::reduce) running.push_back(declare(stage, "acc"));
      }
      const auto fill = [&] { walk_row(walk, stages, running); };
      if (walk.inside.empty()) {
        fill();
      } else {
        to_.elements.enter_scope();
        builder_.when(walk.inside, fill);
        to_.elements.leave_scope();
      }
      if (running.empty()) continue;
      combine(running);
      for (const Running& each : running) finish(walk, each);
    }
  }

  ReductionId reduction_of(const Stage& stage) {
    const DType element = to_.graph[element_of(to_.graph, stage)].type.dtype;
    return stage.maximum ? builder_.online_sum(element)
                         : builder_.reduction(to_.graph[stage.root].op, element);
  }

  Running declare(const Stage& stage, const char* name) {
    builder_.at(stage.root);
    const ReductionId reduction = reduction_of(stage);
    return {stage, reduction, builder_.declare(reduction, name)};
  }

  void walk_row(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running) {
    bool loops = false;
    for (const Stage& stage : stages) {
      loops = loops || walks(stage.form);
      if (stage.form != Stage::Form::row) continue;
      const VarId value = to_.elements.value(stage.root, row_coordinates(stage.root, walk.row));
      store_row(walk, stage.root, value);
    }
    if (!loops) return;
    compute_row_values(walk, stages);
    trips_ > 0 ? unrolled_loop(walk, stages, running) : plain_loop(walk, stages, running);
  }

  void plain_loop(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running) {
    const int pass = stages.front().pass;
    const std::string name = builder_.unique(to_.launch.vector == 1 ? "c" : "g");
    builder_.loop({.name = name, .begin = walk.first, .end = groups(), .step = walk.step, .body = {}}, [&] {
      to_.elements.enter_scope();
      const Group group{.number = Dim::index(name, groups())};
      const std::map<NodeId, BufferId> taken = take_shared(walk, group, pass);
      each_element(group, [&](const Index& which, const Index& c) {
        const Coordinates at = to_.operand_coordinates(dominant_, walk.row, c);
        for (const auto& [node, buffer] : taken) to_.elements.keep(node, at, buffer, which);
        visit(walk, stages, running, c, 0);
        leave_shared(walk, group, which, at, pass);
      });
      to_.elements.leave_scope();
    });
  }

  int shared_hold() const { return to_.schedule.choices.shared_hold; }

  /// Where shared memory has the element: neighbouring threads' side by side.
  Index shared_place(const Walk& walk, const Group& group, const Index& which) const {
    return walk.slot * shared_hold() + which * (shared_hold() / to_.launch.vector) + group.number;
  }

  /// Holds where shared memory has the group; none where it has all of the row.
  std::vector<IndexLess> is_shared(const Group& group) const {
    const int held = shared_hold() / to_.launch.vector;
    if (groups().max() <= held) return {};
    return {{group.number, held}};
  }

  void guarded(const std::vector<IndexLess>& conditions, const std::function<void()>& fill) {
    to_.elements.enter_scope();
    conditions.empty() ? fill() : builder_.when(conditions, fill);
    to_.elements.leave_scope();
  }

  /// The group's elements of what earlier passes left there, in registers; behind its end computed again.
  std::map<NodeId, BufferId> take_shared(const Walk& walk, const Group& group, int pass) {
    std::map<NodeId, BufferId> taken;
    for (const schedule::Held& held : to_.schedule.held) {
      if (!shared_.contains(held.node) || held.first >= pass || pass > held.last) continue;
      const DType dtype = to_.graph[held.node].type.dtype;
      const BufferId local = builder_.buffer("h" + to_.graph.value_name(held.node).substr(1), dtype,
                                             Space::local, to_.launch.vector, true);
      taken[held.node] = local;
      builder_.at(held.node);
      const std::vector<IndexLess> inside = is_shared(group);
      guarded(inside, [&] {
        each_element(group, [&](const Index& which, const Index&) {
          const VarId value =
              builder_.value(dtype, Load{shared_.at(held.node), shared_place(walk, group, which), {}});
          builder_.append(Store{local, which, value});
        });
      });
      if (inside.empty()) continue;
      guarded({{inside[0].bound - 1, group.number}}, [&] {
        each_element(group, [&](const Index& which, const Index& c) {
          const VarId value = to_.elements.value(held.node, to_.operand_coordinates(dominant_, walk.row, c));
          builder_.at(held.node);
          builder_.append(Store{local, which, value});
        });
      });
    }
    return taken;
  }

  void leave_shared(const Walk& walk, const Group& group, const Index& which, const Coordinates& at,
                    int pass) {
    for (const schedule::Held& held : to_.schedule.held) {
      if (!shared_.contains(held.node) || held.first != pass) continue;
      const VarId value = to_.elements.value(held.node, at);
      builder_.at(held.node);
      guarded(is_shared(group), [&] {
        builder_.append(Store{shared_.at(held.node), shared_place(walk, group, which), value});
      });
    }
  }

  /// Trip by trip, so that what is held has a number known to the compiler.
  void unrolled_loop(const Walk& walk, const std::vector<Stage>& stages,
                     const std::vector<Running>& running) {
    const int pass = stages.front().pass;
    const Visit element = [&](const Index& trip, const Index& c) {
      to_.elements.enter_scope();
      const Coordinates at = to_.operand_coordinates(dominant_, walk.row, c);
      for (const schedule::Held& held : to_.schedule.held) {
        const bool taken = held.first < pass && pass <= held.last;
        if (taken) to_.elements.keep(held.node, at, local_.at(held.node), trip);
      }
      visit(walk, stages, running, c, trip);
      for (const schedule::Held& held : to_.schedule.held) {
        if (held.first != pass) continue;
        const VarId value = to_.elements.value(held.node, at);
        builder_.at(held.node);
        builder_.append(Store{local_.at(held.node), trip, value});
      }
      to_.elements.leave_scope();
    };
    each_group(walk, [&](const Group& group) {
      builder_.when({group.inside}, [&] { each_element(group, element); });
    });
  }

  void visit(const Walk& walk, const std::vector<Stage>& stages, const std::vector<Running>& running,
             const Index& c, const Index& trip) {
    auto next = running.begin();
    for (const Stage& stage : stages) {
      if (stage.form == Stage::Form::column_reduce) {
        const auto column = std::find_if(columns_.begin(), columns_.end(),
                                         [&](const Column& each) { return each.root == stage.root; });
        accumulate_column(*column, walk.row, c, trip);
      }
      if (stage.form == Stage::Form::element) store_element(stage.root, walk.row, c);
      if (stage.form == Stage::Form::reduce) accumulate(*next++, walk.row, c);
    }
  }

  /// What the loop repeats for each element though it is the same for all of the row goes before it.
  void compute_row_values(const Walk& walk, const std::vector<Stage>& stages) {
    if (combines_parts()) return;
    const Coordinates at = to_.operand_coordinates(dominant_, walk.row, 0);
    const std::vector<Dim> dims = to_.elements.dims(to_.graph[dominant_].operands[0]);
    std::vector<NodeId> work;
    std::unordered_set<NodeId> seen;
    for (const Stage& stage : stages) {
      if (!walks(stage.form)) continue;
      work.push_back(element_of(to_.graph, stage));
    }
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second || to_.elements.is_held(id) || to_.elements.is_loaded(id)) continue;
      const ir::Node& node = to_.graph[id];
      if (same_for_row(node) && to_.elements.dims(id) == dims) {
        to_.elements.value(node.operands[0], to_.elements.broadcast_coordinates(node, at));
      } else {
        work.insert(work.end(), node.operands.begin(), node.operands.end());
      }
    }
  }

  /// A broadcast that repeats along all dims that are reduced.
  bool same_for_row(const ir::Node& node) const {
    if (info(node.op).relation != ir::Relation::broadcast) return false;
    const std::vector<std::int64_t>& map = ir::attr<ir::DimsAttr>(node).dims;
    const std::vector<Dim>& operand = to_.graph[node.operands[0]].type.dims;
    if (node.type.dims.size() != shape_.is_reduced.size()) return false;
    for (std::size_t i = 0; i < operand.size(); ++i) {
      if (!operand[i].is(1) && shape_.is_reduced[static_cast<std::size_t>(map[i])]) return false;
    }
    return true;
  }

  Coordinates row_coordinates(NodeId node, const Index& row) const {
    return unflatten(row, to_.elements.dims(node));
  }

  void store_element(NodeId root, const Index& row, const Index& c) {
    const Coordinates at = to_.operand_coordinates(dominant_, row, c);
    const VarId value = to_.elements.value(root, at);
    builder_.at(root);
    builder_.append(Store{to_.outputs.at(root), flatten(at, to_.elements.dims(root)), value});
  }

  /// state = combine(state, element c of the row)
  void accumulate(const Running& running, const Index& row, const Index& c) {
    std::vector<VarId> incoming;
    builder_.at(running.root());
    if (combines_parts()) {
      const std::size_t first = scratch_at_.empty() ? 0 : scratch_at_.at(running.root());
      const Index at = scratch_at_.empty() ? row * to_.reduced + c : c * to_.results + row;
      for (std::size_t i = first; i < first + running.state.size(); ++i) {
        incoming.push_back(builder_.value(to_.schedule.scratch[i].dtype, Load{to_.scratch[i], at, {}}));
      }
    } else {
      incoming.push_back(to_.elements.value(element_of(to_.graph, running.stage),
                                            to_.operand_coordinates(running.root(), row, c)));
      builder_.at(running.root());
      if (running.stage.maximum) {
        incoming.push_back(builder_.value(to_.graph[running.root()].type.dtype, Constant{1, 1}));
      } else if (running.state.size() == 2) {
        incoming.push_back(builder_.value(i64, IndexValue{c}));
      }
    }
    builder_.append(Combine{running.reduction, running.state, incoming});
  }

  void finish(const Walk& walk, const Running& running) {
    const VarId value = hold_total(walk, running);
    if (to_.outputs.contains(running.root())) store_row(walk, running.root(), value);
  }

  /// What the row was reduced to, for all that comes behind.
  VarId hold_total(const Walk& walk, const Running& running) {
    builder_.at(running.root());
    VarId value = running.state.back();  // argmax is the position
    if (const auto maximum = running.stage.maximum) {
      to_.elements.hold(*maximum, row_coordinates(*maximum, walk.row), running.state.front());
      // Below a maximum that is infinite a distance is NaN. Of no elements, which are in no other sum of 0,
      // there is none.
      const DType dtype = to_.graph[running.root()].type.dtype;
      const VarId distance = builder_.compute(ir::Op::sub, dtype, {running.state[0], running.state[0]});
      const VarId sum = builder_.compute(ir::Op::add, dtype, {value, distance});
      const VarId none = builder_.compute(ir::Op::eq, boolean, {value, builder_.value(dtype, Constant{})});
      value = builder_.compute(ir::Op::select, dtype, {none, value, sum});
    }
    to_.elements.hold(running.root(), row_coordinates(running.root(), walk.row), value);
    return value;
  }

  void store_row(const Walk& walk, NodeId root, VarId value) {
    builder_.at(root);
    builder_.when(walk.writer, [&] { builder_.append(Store{to_.outputs.at(root), walk.row, value}); });
  }

  void combine_lanes(const std::vector<Running>& running, int lanes = warp_size) {
    for (const Running& each : running) {
      builder_.at(each.root());
      builder_.append(WarpCombine{each.reduction, each.state, lanes});
    }
  }

  void declare_totals(std::vector<Running>& running) {
    for (Running& each : running) {
      builder_.at(each.root());
      each.state = builder_.declare(each.reduction, "total");
    }
  }

  using SharedState = std::vector<BufferId>;

  std::vector<SharedState> shared_states(const std::vector<Running>& running, int elements) {
    std::vector<SharedState> result;
    for (const Running& each : running) {
      SharedState shared;
      for (const DType dtype : builder_.kernel.reductions[each.reduction].state) {
        const std::string name = builder_.component("shared_acc", each.reduction, shared.size());
        shared.push_back(builder_.buffer(name, dtype, Space::shared, elements, true));
      }
      result.push_back(std::move(shared));
    }
    return result;
  }

  void put(const std::vector<SharedState>& shared, const Index& at, const std::vector<Running>& running) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      builder_.at(running[i].root());
      for (std::size_t k = 0; k < shared[i].size(); ++k) {
        builder_.append(Store{shared[i][k], at, running[i].state[k]});
      }
    }
  }

  void take(const std::vector<SharedState>& shared, const Index& at, const std::vector<Running>& running) {
    for (std::size_t i = 0; i < running.size(); ++i) {
      builder_.at(running[i].root());
      std::vector<VarId> incoming;
      for (const BufferId buffer : shared[i]) {
        incoming.push_back(builder_.value(builder_.kernel.buffers[buffer].dtype, Load{buffer, at, {}}));
      }
      builder_.append(Combine{running[i].reduction, running[i].state, incoming});
    }
  }

  Lowering& to_;
  KernelBuilder& builder_;
  std::vector<Stage> stages_;
  const NodeId dominant_;
  const schedule::LoopShape shape_;
  const int warps_;
  const int trips_;                                // 0: loops of no fixed length
  std::map<NodeId, BufferId> local_{}, shared_{};  // of what is held
  std::vector<Column> columns_{};                  // whose state this launch keeps
  std::map<NodeId, std::size_t> scratch_at_{};
};

}  // namespace

void lower_rows(Lowering& to) { RowLowering(to).run(); }

}  // namespace fuse::codegen
