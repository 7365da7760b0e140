// SPDX-License-Identifier: Apache-2.0
#include <functional>
#include <set>

#include "codegen_cuda/lower/row_loops.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;
using schedule::Stage;

int RowLoops::reducing_passes() const {
  std::set<int> passes;
  for (const Stage& stage : stages_) {
    if (stage.form == Stage::Form::inner_reduce) passes.insert(stage.pass);
  }
  return static_cast<int>(passes.size());
}

void RowLoops::each_row(const ThreadIndex& at, Walk walk, const std::function<void(const Walk&)>& fill) {
  const NestPosition rows = position_of(nest_, kept(), at);
  // Where threads that have different rows meet in a warp or at a barrier, all of them make the same trips.
  const bool meet = units_of(nest_, kept(), Level::lane) > 1 ||
                    (values() > 1 && units_of(nest_, walked(), Level::warp) > 1);
  const std::string name = builder_.unique(meet ? "base" : "row");
  const Index first = meet ? unit_of(nest_, kept(), Level::grid, at) * values() : rows.first;
  builder_.loop({.name = name, .begin = first, .end = to_.results, .step = rows.step, .body = {}}, [&] {
    to_.elements.enter_scope();
    const Index row = Dim::index(name, to_.results);
    walk.row = meet ? to_.bind(builder_.unique("row"), row + rows.in_block, to_.results) : row;
    if (meet) mask_row(walk);
    fill(walk);
    to_.elements.leave_scope();
  });
}

void RowLoops::clear_columns() {
  for (Column& column : columns_) {
    builder_.at(column.root);
    column.reduction = reduction_of({.root = column.root, .form = Stage::Form::outer_reduce});
    const Reduction& reduction = builder_.kernel.reductions[column.reduction];
    for (const DType dtype : reduction.state) {
      const std::string name = builder_.component("col", column.reduction, column.state.size()) +
                               to_.graph.value_name(column.root).substr(1);
      column.state.push_back(builder_.buffer(name, dtype, Space::local, elements_per_thread_, true));
    }
  }
  const std::string name = builder_.unique("k");
  builder_.loop({.name = name, .begin = 0, .end = elements_per_thread_, .unrolled = true, .body = {}}, [&] {
    const Index trip = Dim::index(name, elements_per_thread_);
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

void RowLoops::accumulate_column(const Column& column, const Index& row, const Index& c, const Index& trip) {
  const NodeId operand = to_.graph[column.root].operands[0];
  std::vector<VarId> incoming = {to_.elements.value(operand, to_.operand_coordinates(shape_, row, c))};
  builder_.at(column.root);
  if (column.state.size() == 2) incoming.push_back(builder_.value(i64, IndexValue{row}));
  const std::vector<VarId> state = builder_.declare(column.reduction, "acc", load_state(column, trip));
  builder_.append(Combine{column.reduction, state, incoming});
  for (std::size_t i = 0; i < state.size(); ++i) builder_.append(Store{column.state[i], trip, state[i]});
}

std::vector<VarId> RowLoops::load_state(const Column& column, const Index& trip) {
  builder_.at(column.root);
  return load_state(column.state, trip);
}

void RowLoops::store_partial(const Column& column, const Index& part, const Index& c,
                             const std::vector<VarId>& state) {
  for (std::size_t i = 0; i < state.size(); ++i) {
    builder_.append(Store{to_.scratch[column.scratch + i], part * to_.reduced + c, state[i]});
  }
}

void RowLoops::store_columns(const Walk& walk) {
  each_group(walk, [&](const Group& group) {
    builder_.when({group.inside}, [&] {
      each_element(group, [&](const Index& trip, const Index& c) {
        for (const Column& column : columns_) store_partial(column, walk.part, c, load_state(column, trip));
      });
    });
  });
}

void RowLoops::store_rows_columns(const ThreadIndex& at, const Walk& walk) {
  std::vector<Running> running;
  for (const Column& column : columns_)
    running.push_back({{.root = column.root, .form = Stage::Form::outer_reduce}, column.reduction, {}});
  const int warps = units_of(nest_, kept(), Level::warp), lanes = units_of(nest_, kept(), Level::lane);
  const int columns = units_of(nest_, walked(), Level::warp) * units_of(nest_, walked(), Level::lane);
  const Index warp = unit_of(nest_, kept(), Level::warp, at),
              column = position_of(nest_, walked(), at).in_block;
  std::vector<IndexLess> first = position_of(nest_, kept(), at).leader_in_block;
  const std::vector<StateBuffers> shared =
      warps > 1 ? shared_states(running, warps * columns) : std::vector<StateBuffers>();
  each_group(walk, [&](const Group& group) {
    each_element(group, [&](const Index& trip, const Index& c) {
      for (std::size_t i = 0; i < columns_.size(); ++i) {
        running[i].state = load_state(columns_[i], trip);
      }
      if (lanes > 1) {
        for (Running& each : running) {
          builder_.at(each.root());
          each.state = builder_.declare(each.reduction, "acc", each.state);  // the butterfly changes it
        }
        combine_lanes(running, lanes, lane_stride(nest_, kept()));
      }
      if (warps > 1) {
        std::vector<IndexLess> leader;
        if (lanes > 1) leader.push_back({unit_of(nest_, kept(), Level::lane, at), 1});
        builder_.when(leader, [&] { put(shared, warp * columns + column, running); });
        builder_.append(Barrier{});
      }
      std::vector<IndexLess> has = first;
      has.push_back(group.inside);
      builder_.when(has, [&] {
        if (warps > 1) {
          declare_totals(running);
          take_in_turns(running, "w", warps, {}, of_value(shared, column, columns));
        }
        for (std::size_t i = 0; i < columns_.size(); ++i) {
          builder_.at(columns_[i].root);
          store_partial(columns_[i], at.block, c, running[i].state);
        }
      });
      // Before the next trip overwrites what others still read.
      if (warps > 1 && elements_per_thread_ > 1) builder_.append(Barrier{});
    });
  });
}

}  // namespace fuse::codegen
