// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <iterator>

#include "codegen_cuda/row_lowering.hpp"

namespace fuse::codegen {

using namespace kernel;  // NOLINT: this file is about the kernel IR
using ir::NodeId;
using schedule::KernelSchedule;
using schedule::Mapping;
using schedule::Stage;

void RowLowering::by_parts() {
  to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
    const Walk walk = walk_of(at);
    std::vector<Running> totals;
    for (const Stage& stage : to_.section.combines) totals.push_back(declare(stage, "total"));
    take_parts(at, walk, totals);
    walk_section(at, walk, to_.section);
  });
}

void RowLowering::by_parts_together() {
  const ThreadIndex& at = *to_.joined;
  const std::int64_t blocks = builder_.kernel.grid.constant(), at_once = blocks / parts();
  const auto fill = [&](const Index& base) {
    Walk walk = walk_of(at);
    walk.row = to_.bind(builder_.unique("row"), base + walk.row, to_.results);
    walk.part = base * parts() + at.block;
    if (at_once * parts() < blocks) walk.inside = {{at.block, at_once * parts()}};
    const std::int64_t rows = to_.results.is_constant() ? to_.results.constant() : 0;
    const bool whole = rows > 0 && rows % at_once == 0;
    if (!whole) walk.inside.push_back({walk.row, to_.results});
    std::vector<Stage> left;  // by the section before
    for (const schedule::Section& section : to_.phase.sections) {
      std::vector<Running> totals;
      if (!left.empty()) to_.row_barrier();
      for (const Stage& stage : left) totals.push_back(declare(stage, "total"));
      take_parts(at, walk, totals);
      builder_.at(to_.root());
      const auto part = [&] {
        to_.elements.enter_scope();
        walk_section(at, walk, section);
        to_.elements.leave_scope();
      };
      walk.inside.empty() ? part() : builder_.when(walk.inside, part);
      left = section.leaves;
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

void RowLowering::by_cluster() {
  to_.threads(builder_.unique("b"), [&](const ThreadIndex& at) {
    const Walk walk = walk_of(at);
    const bool stays = to_.launch.tiles != to_.launch.grid;
    int last_meeting = 0;  // the pass behind which no block reads what another left
    for (const Stage& stage : stages_) {
      if (stage.form == Stage::Form::reduce) last_meeting = std::max(last_meeting, stage.pass);
    }
    for (int pass = 0; pass <= last_pass(stages_); ++pass) {
      const std::vector<Stage> stages = stages_of_pass(pass);
      std::vector<Running> running = walk_part(at, walk, stages);
      if (running.empty()) continue;
      const std::vector<StateBuffers> left = shared_states(running, 1);
      builder_.when({{at.warp, 1}, {at.lane, 1}}, [&] { put(left, 0, running); });
      builder_.append(ClusterBarrier{.shared = true});
      declare_totals(running);
      take_in_turns(running, "p", parts(), {.first = at.lane, .count = warp_size},
                    [&](std::size_t i, const Index& part) { return load_state(left[i], 0, part); });
      if (pass == last_meeting && !stays) builder_.append(ClusterArrive{});
      finish_parts(walk, running);
    }
    builder_.at(to_.root());
    // Until then others may read what this block left; one that stays leaves more in the same place.
    stays ? builder_.append(ClusterBarrier{.shared = true}) : builder_.append(ClusterWait{});
  });
}

std::vector<Stage> RowLowering::stages_of_pass(int pass) const {
  std::vector<Stage> stages;
  std::copy_if(stages_.begin(), stages_.end(), std::back_inserter(stages),
               [&](const Stage& stage) { return stage.pass == pass; });
  return stages;
}

void RowLowering::take_parts(const ThreadIndex& at, const Walk& walk, const std::vector<Running>& totals) {
  const auto take = [&] {
    take_in_turns(totals, "p", parts(), {.first = at.lane, .count = warp_size},
                  [&](std::size_t i, const Index& part) {
                    return load_state(scratch_state(totals[i]), walk.row * parts() + part);
                  });
  };
  if (totals.empty()) return;
  walk.inside.empty() ? take() : builder_.when(walk.inside, take);
  finish_parts(walk, totals);
}

void RowLowering::finish_parts(const Walk& walk, const std::vector<Running>& totals) {
  for (const Running& total : totals) {
    const VarId value = hold_total(walk, total);
    if (!to_.outputs.contains(total.root())) continue;
    walk.inside.empty() ? store_row(walk, total.root(), value)
                        : builder_.when(walk.inside, [&] { store_row(walk, total.root(), value); });
  }
}

std::vector<RowLowering::Running> RowLowering::walk_part(const ThreadIndex& at, const Walk& walk,
                                                         const std::vector<Stage>& stages) {
  std::vector<Running> running;
  for (const Stage& stage : stages) {
    if (stage.form == Stage::Form::reduce) running.push_back(declare(stage, "acc"));
  }
  if (!stages.empty()) walk_row(walk, stages, running);
  if (!running.empty()) combine_block(at, running);
  return running;
}

void RowLowering::walk_section(const ThreadIndex& at, const Walk& walk, const schedule::Section& section) {
  const std::vector<Running> running = walk_part(at, walk, section.walks);
  for (const Running& each : running) {
    builder_.at(each.root());
    builder_.when({{at.warp, 1}, {at.lane, 1}}, [&] { put(scratch_state(each), walk.part, each); });
  }
}

}  // namespace fuse::codegen
