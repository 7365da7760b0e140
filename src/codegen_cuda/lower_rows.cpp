// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "codegen_cuda/row_lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;
using schedule::Mapping;
using schedule::Stage;

namespace {

/// A kernel of several launches has the loops of its launches.
const schedule::Nest& nest_to_walk(const Lowering& to) {
  const bool joined = to.launch.role == KernelSchedule::Role::joined;
  return (joined ? to.phase.kernels.front() : to.launch).nest;
}

}  // namespace

RowLowering::RowLowering(Lowering& to)
    : to_(to),
      builder_(to.builder),
      stages_(stages_of_launch()),
      dominant_(schedule::dominant(to.phase.segment)),
      shape_(schedule::loop_shape(to.graph, to.phase.segment)),
      nest_(has_columns(to.phase.segment) ? nest_to_walk(to) : schedule::without_turns(nest_to_walk(to))),
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
  if (to_.launch.mapping != Mapping::split) return by_rows();
  if (to_.launch.cluster > 1) return by_cluster();
  to_.launch.role == KernelSchedule::Role::joined ? by_parts_together() : by_parts();
}

RowLowering::Walk RowLowering::walk_of(const ThreadIndex& at) const {
  const NestPlace rows = place_of(nest_, kept(), at), elements = place_of(nest_, walked(), at);
  return {.row = rows.first,
          .first = elements.first,
          .step = elements.step,
          .writer = elements.leader,
          .part = at.block,
          .slot = rows.in_block};
}

bool RowLowering::neighbours_share_row() const { return fastest_lane(nest_) == walked(); }

void RowLowering::by_rows() {
  // A block of one row at a time has its number.
  const bool shared = !varies_in_block(nest_, kept());
  to_.threads(builder_.unique(shared && columns_.empty() ? "row" : "b"), [&](const ThreadIndex& at) {
    const Combiner combine = [&](std::vector<Running>& running) { this->combine(at, running); };
    Walk walk = walk_of(at);
    if (!columns_.empty()) {
      clear_columns();
      each_row(walk.row, place_of(nest_, kept(), at).step, [&](const Index& row) {
        walk.row = row;
        passes(walk, combine);
        // With one barrier a row, a thread that hurries on would overwrite what others still read.
        const bool meets = units_of(nest_, walked(), Level::warp) > 1;
        if (meets && reducing_passes() == 1) builder_.append(Barrier{});
      });
      return shared ? store_columns(walk) : store_warps_columns(at);
    }
    if (shared) return passes(walk, combine);
    const int lanes = units_of(nest_, walked(), Level::lane);
    walk.row = to_.bind(builder_.unique(neighbours_share_row() ? "row" : "column"), walk.row, to_.results);
    const IndexLess inside{walk.row, to_.results};
    // Warps have rows of their own: one that has none does nothing.
    if (lanes == warp_size) return builder_.when({inside}, [&] { passes(walk, combine); });
    // Else the threads that combine are in one warp or block with those of other rows, and all take part.
    if (neighbours_share_row()) walk.first = to_.bind(builder_.unique("l"), walk.first, lanes);
    if (lanes > 1) walk.writer = {{walk.first, 1}};
    walk.inside = {inside};
    walk.writer.push_back(inside);
    passes(walk, combine);
  });
}

bool RowLowering::keeps_trips(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::joined || launch.cluster > 1) return true;
  return launch.role != KernelSchedule::Role::combine && launch.mapping != Mapping::split;
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
