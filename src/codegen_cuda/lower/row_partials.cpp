// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "codegen_cuda/lower/row_loops.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Level;
using schedule::Stage;

void RowLoops::in_sections() {
  to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
    Walk walk = walk_of(at);
    if (values() > 1) walk.row = to_.bind(builder_.unique("row"), walk.row, rows());
    mask_row(walk);
    const std::vector<Running> totals = declare_each_row(to_.section.combines, "total");
    take_partials(at, walk, totals);
    walk_section(at, walk, to_.section);
  });
}

void RowLoops::in_sections_together() {
  const ThreadIndex& at = *to_.cooperative;
  const std::int64_t blocks = builder_.kernel.grid.constant(), groups = blocks / blocks_per_row(),
                     at_once = groups * values();
  const auto fill = [&](const Index& base) {
    Walk walk = walk_of(at);
    walk.row = to_.bind(builder_.unique("row"), base + walk.row, rows());
    mask_row(walk);
    walk.part = base * blocks_per_row() + at.block;
    if (groups * blocks_per_row() < blocks) walk.present = {{at.block, groups * blocks_per_row()}};
    const std::int64_t count = rows().is_constant() ? rows().constant() : 0;
    const bool whole = count > 0 && count % at_once == 0;
    if (!whole && values() == 1) walk.present.push_back({walk.row, rows()});
    std::vector<Stage> left;  // what the section before left
    for (const schedule::Section& section : to_.phase.sections) {
      if (!left.empty()) to_.row_barrier();
      // A section that only makes values of whole rows is one block: the others need no totals.
      const bool last = &section == &to_.phase.sections.back();
      if (last && !walks_rows(section)) walk.takes = {{walk.share, 1}};
      const std::vector<Running> totals = declare_each_row(left, "total");
      take_partials(at, walk, totals);
      builder_.at(to_.root());
      builder_.when(walk.present, [&] {
        to_.elements.enter_scope();
        walk_section(at, walk, section);
        to_.elements.leave_scope();
      });
      left = section.leaves;
    }
  };
  to_.elements.enter_scope();
  if (rows().is_constant() && rows().constant() <= at_once) {
    fill(0);
  } else {
    const std::string base = builder_.unique("base");
    builder_.loop({.name = base, .begin = 0, .end = rows(), .step = at_once, .body = {}},
                  [&] { fill(Dim::index(base, rows())); });
  }
  to_.elements.leave_scope();
}

void RowLoops::by_cluster() {
  to_.threads(
      builder_.unique("b"),
      [&](const ThreadIndex& at) {
        Walk walk = walk_of(at);
        if (values() > 1) walk.row = to_.bind(builder_.unique("row"), walk.row, rows());
        mask_row(walk);
        const bool stays = to_.launch.tiles != to_.launch.grid;
        int last_meeting = 0;  // the pass after which no block reads what another left
        for (const Stage& stage : stages_) {
          if (stage.form == Stage::Form::inner_reduce) last_meeting = std::max(last_meeting, stage.pass);
        }
        for (int pass = 0; pass <= last_pass(stages_); ++pass) {
          const std::vector<Stage> stages = stages_of_pass(pass);
          std::vector<Running> running = walk_part(at, walk, stages);
          if (running.empty()) continue;
          const std::vector<StateBuffers> left = shared_states(running, values());
          builder_.when(position_of(nest_, walked(), at).leader_in_block,
                        [&] { put(left, walk.slot, running); });
          builder_.append(ClusterBarrier{.shared = true});
          declare_totals(running);
          take_partials_of_blocks(at, walk, running, [&](std::size_t i, const Index& part) {
            return load_state(left[i], walk.slot, part);
          });
          if (pass == last_meeting && !stays) builder_.append(ClusterArrive{});
          finish_partials(walk, running);
        }
        builder_.at(to_.root());
        // Until then others may read what this block left; one that stays leaves more at the same location.
        stays ? builder_.append(ClusterBarrier{.shared = true}) : builder_.append(ClusterWait{});
      },
      beside_turns());
}

std::vector<Stage> RowLoops::stages_of_pass(int pass) const {
  std::vector<Stage> stages;
  std::copy_if(stages_.begin(), stages_.end(), std::back_inserter(stages),
               [&](const Stage& stage) { return stage.pass == pass; });
  return stages;
}

void RowLoops::take_partials(const ThreadIndex& at, const Walk& walk, std::vector<Running> totals) {
  if (totals.empty()) return;
  take_partials_of_blocks(at, walk, totals, [&](std::size_t i, const Index& part) {
    return load_state(scratch_state(totals[i]), row_of(walk, totals[i]) * blocks_per_row() + part);
  });
  finish_partials(walk, totals);
}

void RowLoops::finish_partials(const Walk& walk, const std::vector<Running>& totals) {
  totals_.insert(totals_.end(), totals.begin(), totals.end());
  for (const Running& total : totals) {
    const Walk row = walk_of_row(walk, total.which);
    const VarId value = define_total(row, total);
    if (!to_.outputs.contains(total.root())) continue;
    builder_.when(walk.present, [&] { store_row(row, total.root(), value); });
  }
}

std::vector<RowLoops::Running> RowLoops::walk_part(const ThreadIndex& at, const Walk& walk,
                                                   const std::vector<Stage>& stages) {
  std::vector<Running> running = declare_for_walk(stages);
  if (!stages.empty()) masked(walk, [&] { walk_row(walk, stages, running); });
  running = each_row_of(running);
  if (!running.empty()) combine(at, running);
  return running;
}

void RowLoops::walk_section(const ThreadIndex& at, const Walk& walk, const schedule::Section& section) {
  const std::vector<Running> running = walk_part(at, walk, section.walks);
  for (const Running& each : running) {
    const bool one = values() == 1 && rows_side_by_side() == 1;
    const Index part = one ? walk.part : row_of(walk, each) * blocks_per_row() + walk.share;
    builder_.when(walk.leader, [&] { put(scratch_state(each), part, each); });
  }
}

}  // namespace fuse::codegen
