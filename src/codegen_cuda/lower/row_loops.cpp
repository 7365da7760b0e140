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
  const bool cooperative = to.launch.role == KernelSchedule::Role::cooperative;
  return (cooperative ? to.phase.kernels.front() : to.launch).nest;
}

}  // namespace

RowLoops::RowLoops(Lowering& to)
    : to_(to),
      builder_(to.builder),
      stages_(stages_of_launch()),
      dominant_(schedule::dominant(to.phase.computes)),
      shape_(schedule::loop_shape(to.graph, to.phase.computes)),
      nest_(has_columns(to.phase.computes) ? nest_to_walk(to) : schedule::without_turns(nest_to_walk(to))),
      warps_(to.launch.block_threads / warp_size),
      elements_per_thread_(keeps_elements(to.launch) ? to.phase.elements_per_thread : 0) {
  for (const Stage& stage : stages_) {
    if (stage.form != Stage::Form::outer_reduce) continue;
    const std::size_t scratch = schedule::scratch_index(to.graph, to.phase.computes, stage.root);
    columns_.push_back({.root = stage.root, .scratch = scratch});
  }
}

void RowLoops::run() {
  for (const schedule::CachedValue& cached : to_.phase.cached) {
    const std::string name = to_.graph.value_name(cached.node).substr(1);
    const DType dtype = to_.graph[cached.node].type.dtype;
    if (elements_per_thread_ > 0)
      local_[cached.node] = builder_.buffer("h" + name, dtype, Space::local, elements_per_thread_, true);
    if (shared_cache() == 0) continue;
    const int elements = shared_cache() * schedule::rows_at_once(to_.phase.choices);
    shared_[cached.node] = builder_.buffer("s" + name, dtype, Space::shared, elements, true);
  }
  if (!shares_rows(to_.launch)) return by_rows();
  if (to_.launch.cluster > 1) return by_cluster();
  to_.launch.role == KernelSchedule::Role::cooperative ? in_sections_together() : in_sections();
}

RowLoops::Walk RowLoops::walk_of(const ThreadIndex& at) const {
  const NestPosition rows = position_of(nest_, kept(), at), elements = position_of(nest_, walked(), at);
  return {.row = rows.first,
          .first = elements.first,
          .step = elements.step,
          .writer = elements.leader,
          .leader = elements.leader_in_block,
          .part = at.block,
          .share = unit_of(nest_, walked(), Level::grid, at),
          .slot = rows.in_block};
}

RowLoops::Walk RowLoops::walk_of_row(const Walk& walk, int which) const {
  if (rows_side_by_side() == 1) return walk;
  Walk row = walk;
  row.row = walk.row * rows_side_by_side() + which;
  return row;
}

void RowLoops::mask_row(Walk& walk) const {
  if (values() == 1) return;
  const IndexLess inside{walk.row, rows()};
  walk.inside = {inside};
  walk.writer.push_back(inside);
  walk.leader.push_back(inside);
}

RowLoops::Walk RowLoops::among_all(Walk walk) const {
  walk.row = to_.among_all(walk.row, rows());
  return walk;
}

void RowLoops::masked(const Walk& walk, const std::function<void()>& fill) {
  if (walk.inside.empty()) return fill();
  to_.elements.enter_scope();
  builder_.when(walk.inside, fill);
  to_.elements.leave_scope();
}

bool RowLoops::neighbours_share_row() const { return schedule::fastest_lane(nest_.splits) == walked(); }

void RowLoops::by_rows() {
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
            // With one barrier per row, a thread that hurries on would overwrite what others still read.
            if (warps > 1 && reducing_passes() == 1) builder_.append(Barrier{});
          });
          return shared ? store_columns(walk) : store_rows_columns(at, walk);
        }
        if (shared) return passes(among_all(walk), combine);
        const bool by_warps = warps == 1 && lanes == warp_size;
        walk.row = to_.bind(builder_.unique(neighbours_share_row() ? "row" : "column"), walk.row, rows());
        // Warps have rows of their own: one that has none does nothing.
        if (by_warps) return builder_.when({{walk.row, rows()}}, [&] { passes(among_all(walk), combine); });
        // Else the threads that combine are in one warp or block with those of other rows, and all take part.
        if (neighbours_share_row() && warps == 1)
          walk.first = to_.bind(builder_.unique("l"), walk.first, lanes);
        if (lanes > 1) walk.writer = {{walk.first, 1}};
        mask_row(walk);
        passes(among_all(walk), combine);
      },
      beside_turns());
}

bool RowLoops::shares_rows(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::cooperative || launch.cluster > 1) return true;
  // What no block walks any more, one block takes from all.
  const char walked = launch.nest.dims[1].name;
  return units_of(launch.nest, walked, Level::grid) > 1 || (launch.section > 0 && walked != 'p');
}

bool RowLoops::keeps_elements(const KernelSchedule& launch) {
  if (launch.role == KernelSchedule::Role::cooperative || launch.cluster > 1) return true;
  return launch.role != KernelSchedule::Role::combine && !shares_rows(launch);
}

void RowLoops::passes(const Walk& walk, const Combiner& combine) {
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

void lower_rows(Lowering& to) { RowLoops(to).run(); }

}  // namespace fuse::codegen
