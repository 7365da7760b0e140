// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "codegen_cuda/row_lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;
using schedule::Stage;

RowLowering::RowLowering(Lowering& to)
    : to_(to),
      builder_(to.builder),
      stages_(stages_of_launch()),
      dominant_(schedule::dominant(to.phase.segment)),
      shape_(schedule::loop_shape(to.graph, to.graph[dominant_])),
      warps_(to.launch.block_threads / warp_size),
      trips_(keeps_trips(to.launch) ? to.phase.trips : 0) {
  for (const Stage& stage : stages_) {
    if (stage.form != Stage::Form::column_reduce) continue;
    const std::size_t scratch = schedule::scratch_place(to.graph, to.phase.segment, stage.root);
    columns_.push_back({.root = stage.root, .scratch = scratch});
  }
}

void RowLowering::run() {
  for (const schedule::Held& held : to_.phase.held) {
    const std::string name = to_.graph.value_name(held.node).substr(1);
    const DType dtype = to_.graph[held.node].type.dtype;
    if (trips_ > 0) local_[held.node] = builder_.buffer("h" + name, dtype, Space::local, trips_, true);
    if (shared_hold() == 0) continue;
    const int elements = shared_hold() * schedule::rows_at_once(to_.phase.choices);
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

void RowLowering::by_warp() {
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

void RowLowering::by_lanes(const ThreadIndex& at) {
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

bool RowLowering::keeps_trips(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::joined || launch.cluster > 1) return true;
  return launch.role != KernelSchedule::Role::combine && launch.mapping != Mapping::split;
}

void RowLowering::by_block() {
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

void RowLowering::by_tile() {
  to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
    const Index column = to_.bind(builder_.unique("column"), at.block * warp_size + at.lane, to_.results);
    const std::vector<IndexLess> inside = {{column, to_.results}};
    passes({.row = column,
            .first = at.warp,
            .step = warps_,
            .inside = inside,
            .writer = {{at.warp, 1}, {column, to_.results}}},
           [&](std::vector<Running>& running) { combine_warps(at, running); });
  });
}

void RowLowering::passes(const Walk& walk, const Combiner& combine) {
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

void lower_rows(Lowering& to) { RowLowering(to).run(); }

}  // namespace fuse::codegen
