// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/loops.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// An extent of the loops that all stages of a phase share, and whether the phase reduces it.
struct SharedExtent {
  Dim extent{};
  bool reduced = false;
};

std::vector<SharedExtent> shared_extents(const ir::Graph& graph, const Phase& phase) {
  std::vector<SharedExtent> extents;
  const ir::Node& leader = graph[dominant(phase)];
  const ir::Relation relation = info(leader.op).relation;
  if (relation != ir::Relation::reduce && relation != ir::Relation::scan) {
    const NodeId stored = phase.in_place ? graph[phase.root].operands[1] : phase.root;
    for (const Dim& dim : graph[stored].type.dims) extents.push_back({dim, false});
    return extents;
  }
  const LoopShape shape = loop_shape(graph, leader);
  const std::vector<Dim>& dims = graph[leader.operands[0]].type.dims;
  for (std::size_t i = 0; i < dims.size(); ++i) extents.push_back({dims[i], shape.is_reduced[i]});
  return extents;
}

/// Whether a stage walks an extent, and whether it adds up along it.
bool has_loop(const Stage& stage, const SharedExtent& shared) {
  if (stage.form == Stage::Form::row) return !shared.reduced;
  return stage.form != Stage::Form::column || shared.reduced;
}
bool adds_up(const Stage& stage, const SharedExtent& shared) {
  if (stage.form == Stage::Form::inner_reduce) return shared.reduced;
  return stage.form == Stage::Form::outer_reduce && !shared.reduced;
}
/// Whether what the stage makes has the extent.
bool keeps(const Stage& stage, const SharedExtent& shared) {
  return has_loop(stage, shared) && !adds_up(stage, shared);
}

/// The stages, by their roots, whose values one stage needs; it looks through what is in no stage.
std::vector<std::size_t> stages_read(const ir::Graph& graph, const Phase& phase,
                                     const std::unordered_map<NodeId, std::size_t>& of_root,
                                     std::size_t stage) {
  std::vector<std::size_t> found;
  std::unordered_set<NodeId> seen;
  std::vector<NodeId> work = graph[phase.stages[stage].root].operands;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second) continue;
    if (const auto other = of_root.find(id); other != of_root.end()) {
      if (other->second != stage) found.push_back(other->second);
      continue;
    }
    if (!std::binary_search(phase.nodes.begin(), phase.nodes.end(), id)) continue;
    work.insert(work.end(), graph[id].operands.begin(), graph[id].operands.end());
  }
  std::sort(found.begin(), found.end());
  return found;
}

void add_loops(const ir::Graph& graph, const Phase& phase, std::vector<Loop>& loops) {
  const std::vector<SharedExtent> extents = shared_extents(graph, phase);
  std::unordered_map<NodeId, std::size_t> of_root;
  for (std::size_t i = 0; i < phase.stages.size(); ++i) of_root.emplace(phase.stages[i].root, i);
  std::map<std::pair<std::size_t, std::size_t>, std::size_t> number;  // of a stage's loop over an extent
  for (std::size_t i = 0; i < phase.stages.size(); ++i) {
    const Stage& stage = phase.stages[i];
    const std::vector<std::size_t> reads = stages_read(graph, phase, of_root, i);
    for (std::size_t axis = 0; axis < extents.size(); ++axis) {
      const SharedExtent& shared = extents[axis];
      if (!has_loop(stage, shared) || shared.extent.is(1)) continue;
      Loop loop{.name = graph.value_name(stage.root) + "." + std::to_string(axis),
                .extent = shared.extent,
                .may_be_blocks = !adds_up(stage, shared)};
      for (const std::size_t read : reads) {
        if (!keeps(phase.stages[read], shared)) {
          loop.may_be_blocks = false;
        } else if (const auto parent = number.find({read, axis}); parent != number.end()) {
          loop.descends_from.push_back(parent->second);
        }
      }
      number[{i, axis}] = loops.size();
      loops.push_back(std::move(loop));
    }
  }
}

}  // namespace

std::vector<Loop> loops_of(const ir::Graph& graph, const Segment& segment) {
  std::vector<Loop> loops;
  for (const Phase& phase : segment.phases) add_loops(graph, phase, loops);
  return loops;
}

}  // namespace fuse::schedule
