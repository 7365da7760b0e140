// Layer III: groups on independent branches become one group, side by side in one kernel (APOLLO, 4.3 and
// Algorithm 3).
//
// Before:  {exp %x} {tanh %y} {sum %z}     three small kernels, each leaves most of the device idle
// After:   {exp %x, tanh %y, sum %z}
//
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <span>

#include "ir/graph/question.hpp"
#include "schedule/groups/group_graph.hpp"

namespace fuse::schedule {

/// The seconds by the cost model.
struct ParallelModel {
  std::function<double(GroupGraph::Id)> alone;  ///< a kernel of its own, its launch included
  /// The groups in one kernel, under shared resources; sorted by descending `alone`.
  std::function<double(std::span<const GroupGraph::Id>)> together;
};

/// The time is that of the launch, and the larger of the memory time and the time of the longest group on its
/// share of the device. Groups that fill the device by themselves gain only the launch, and pay for running
/// beside others.
ParallelModel contention_model(const ir::Graph&, const GroupGraph&, const Target&);

/// Tries patterns in the order of the paper: branches of a common producer, branches of a common consumer,
/// independent branches (at most 7, through a virtual tail, else a virtual head). Contractions and user
/// kernels stay out. Only groups that may run at one time become one: no chain of such calls gets longer, as
/// the paper's examples, which have none, need not say. `decide` is asked about each op of a level and the
/// first of each set that it may join, in the order of the graph.
void stitch_parallel(GroupGraph&, const ParallelModel&, const ir::Decide& decide = {});

/// The lines 5 to 10 of Algorithm 3: ranges [first, last) of the ops of one level, sorted by descending cost,
/// that gain when they are composed. `gains(first, last)` is called for ranges of two or more.
std::vector<std::pair<std::size_t, std::size_t>> compose_level(
    std::size_t count, const std::function<bool(std::size_t first, std::size_t last)>& gains);

}  // namespace fuse::schedule
