// SPDX-License-Identifier: Apache-2.0
#include "codegen_cuda/lower/row_loops.hpp"

#include <utility>

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;
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
  if (!shares_rows(to_.launch)) return by_rows();
  if (to_.launch.cluster > 1) return by_cluster();
  to_.launch.role == KernelSchedule::Role::joined ? by_parts_together() : by_parts();
}

RowLowering::Walk RowLowering::walk_of(const ThreadIndex& at) const {
  const NestPlace rows = place_of(nest_, kept(), at), elements = place_of(nest_, walked(), at);
  return {.row = rows.first,
          .first = elements.first,
          .step = elements.step,
          .writer = elements.leader,
          .leader = elements.leader_in_block,
          .part = at.block,
          .share = unit_of(nest_, walked(), Level::grid, at),
          .slot = rows.in_block};
}

RowLowering::Walk RowLowering::walk_of_row(const Walk& walk, int which) const {
  if (rows_side_by_side() == 1) return walk;
  Walk row = walk;
  row.row = walk.row * rows_side_by_side() + which;
  return row;
}

void RowLowering::mask_row(Walk& walk) const {
  if (values() == 1) return;
  const IndexLess inside{walk.row, rows()};
  walk.inside = {inside};
  walk.writer.push_back(inside);
  walk.leader.push_back(inside);
}

void RowLowering::masked(const Walk& walk, const std::function<void()>& fill) {
  if (walk.inside.empty()) return fill();
  to_.elements.enter_scope();
  builder_.when(walk.inside, fill);
  to_.elements.leave_scope();
}

bool RowLowering::neighbours_share_row() const { return schedule::fastest_lane(nest_.splits) == walked(); }

void RowLowering::by_rows() {
  // A block of one row at a time has its number.
  const bool shared = !varies_in_block(nest_, kept());
  to_.threads(
      builder_.unique(shared && columns_.empty() ? "row" : "b"),
      [&](const ThreadIndex& at) {
        const Combiner combine = [&](std::vector<Running>& running) { this->combine(at, running); };
        Walk walk = walk_of(at);
        const int warps = units_of(nest_, walked(), Level::warp),
                  lanes = units_of(nest_, walked(), Level::lane);
        if (!columns_.empty()) {
          clear_columns();
          each_row(at, walk, [&](const Walk& row) {
            passes(row, combine);
            // With one barrier a row, a thread that hurries on would overwrite what others still read.
            if (warps > 1 && reducing_passes() == 1) builder_.append(Barrier{});
          });
          return shared ? store_columns(walk) : store_rows_columns(at, walk);
        }
        if (shared) return passes(walk, combine);
        const bool by_warps = warps == 1 && lanes == warp_size;
        walk.row = to_.bind(builder_.unique(neighbours_share_row() ? "row" : "column"), walk.row, rows());
        // Warps have rows of their own: one that has none does nothing.
        if (by_warps) return builder_.when({{walk.row, rows()}}, [&] { passes(walk, combine); });
        // Else the threads that combine are in one warp or block with those of other rows, and all take part.
        if (neighbours_share_row() && warps == 1)
          walk.first = to_.bind(builder_.unique("l"), walk.first, lanes);
        if (lanes > 1) walk.writer = {{walk.first, 1}};
        mask_row(walk);
        passes(walk, combine);
      },
      beside_turns());
}

bool RowLowering::shares_rows(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::joined || launch.cluster > 1) return true;
  // What no block walks any more, one block takes from all.
  const char walked = launch.nest.dims[1].name;
  return units_of(launch.nest, walked, Level::grid) > 1 || (launch.section > 0 && walked != 'p');
}

bool RowLowering::keeps_trips(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::joined || launch.cluster > 1) return true;
  return launch.role != KernelSchedule::Role::combine && !shares_rows(launch);
}

void RowLowering::passes(const Walk& walk, const Combiner& combine) {
  for (int pass = 0; pass <= last_pass(stages_); ++pass) {
    const std::vector<Stage> stages = stages_of_pass(pass);
    std::vector<Running> running = declare_for_walk(stages);
    masked(walk, [&] { walk_row(walk, stages, running); });
    running = each_row_of(running);
    if (running.empty()) continue;
    combine(running);
    for (const Running& each : running) finish(walk, each);
    totals_.insert(totals_.end(), running.begin(), running.end());
  }
}

void lower_rows(Lowering& to) { RowLowering(to).run(); }

}  // namespace fuse::codegen
