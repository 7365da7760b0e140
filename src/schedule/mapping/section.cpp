// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/section.hpp"

#include <algorithm>
#include <unordered_set>

#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

bool contains(const std::vector<NodeId>& ids, NodeId id) {
  return std::find(ids.begin(), ids.end(), id) != ids.end();
}

/// The form of the stages whose partials blocks leave, whatever the choices: columns where there are any,
/// else rows.
Stage::Form partial_form(const Phase& phase) {
  return has_columns(phase) ? Stage::Form::outer_reduce : Stage::Form::inner_reduce;
}

bool leaves_partials(const Phase& phase, const Choices& choices) {
  return choices.cluster() == 1 && (splits_rows(choices) || has_columns(phase));
}

/// The section that walks a stage: what is made from columns comes after all rows, and each pass over split
/// rows after the one before.
std::size_t section_of(const Stage& stage, const Choices& choices) {
  if (splits_rows(choices)) return static_cast<std::size_t>(stage.pass);
  return stage.form == Stage::Form::column ? 1 : 0;
}

/// What the section computes, and what that is computed from, starting at the totals of `partial` reductions.
std::unordered_set<NodeId> values_of(const ir::Graph& graph, const Phase& phase, const Section& section,
                                     const std::vector<Stage>& partial) {
  const std::unordered_set<NodeId> inside(phase.nodes.begin(), phase.nodes.end());
  std::unordered_set<NodeId> seen, totals;
  for (const Stage& stage : partial) {
    for (const NodeId total : totals_of(stage)) totals.insert(total);
  }
  std::vector<NodeId> work = section.stores;
  for (const Stage& stage : section.walks) work.push_back(stage.root);
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!seen.insert(id).second || !inside.contains(id) || totals.contains(id)) continue;
    work.insert(work.end(), graph[id].operands.begin(), graph[id].operands.end());
  }
  return seen;
}

}  // namespace

std::size_t section_count(const Phase& phase, const Choices& choices) {
  if (!leaves_partials(phase, choices)) return 1;
  std::size_t count = 0;
  for (const Stage& stage : phase.stages) {
    const bool leaves = stage.form == partial_form(phase);
    count = std::max(count, section_of(stage, choices) + 1 + (leaves ? 1 : 0));
  }
  return count;
}

bool walks_rows(const Section& section) {
  return std::any_of(section.walks.begin(), section.walks.end(),
                     [](const Stage& stage) { return walks(stage.form); });
}

std::vector<Section> sections_of(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  std::vector<Section> sections(section_count(phase, choices));
  const bool partials = leaves_partials(phase, choices);
  for (const Stage& stage : phase.stages) {
    const std::size_t at = partials ? section_of(stage, choices) : 0;
    const bool leaves = partials && stage.form == partial_form(phase);
    sections[at].walks.push_back(stage);
    if (leaves) sections[at].leaves.push_back(stage);
    if (contains(phase.results, stage.root)) sections[at + (leaves ? 1 : 0)].stores.push_back(stage.root);
  }
  std::vector<Stage> partial;  // reductions whose partials earlier sections left
  for (Section& section : sections) {
    const std::unordered_set<NodeId> values = values_of(graph, phase, section, partial);
    for (const NodeId input : phase.inputs) {
      if (values.contains(input)) section.inputs.push_back(input);
    }
    for (const Stage& stage : partial) {
      const std::vector<NodeId> totals = totals_of(stage);
      const bool needed =
          std::any_of(totals.begin(), totals.end(), [&](NodeId id) { return values.contains(id); });
      if (needed) section.combines.push_back(stage);
    }
    partial.insert(partial.end(), section.leaves.begin(), section.leaves.end());
  }
  return sections;
}

std::vector<Stage> stages_over_partials(const Section& section) {
  std::vector<Stage> stages;
  for (Stage stage : section.combines) {  // with the maximum of an online sum
    stage.form = Stage::Form::inner_reduce;
    stage.pass = 0;
    stages.push_back(stage);
  }
  for (const Stage& stage : section.walks)
    stages.push_back({.root = stage.root, .form = Stage::Form::row, .pass = 1});
  return stages;
}

std::vector<ScratchArray> scratch_of(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  std::vector<ScratchArray> arrays;
  if (!leaves_partials(phase, choices)) return arrays;
  const LoopShape shape = loop_shape(graph, phase);
  const Dim elements = product(has_columns(phase) ? shape.reduced : shape.kept) * choices.blocks_per_row();
  for (const Stage& stage : phase.stages) {
    if (stage.form != partial_form(phase)) continue;
    for (const DType dtype : reduction_state(graph, stage)) arrays.push_back({dtype, elements});
  }
  return arrays;
}

std::size_t scratch_index(const ir::Graph& graph, const Phase& phase, NodeId reduction) {
  std::size_t index = 0;
  for (const Stage& stage : phase.stages) {
    if (stage.root == reduction) break;
    if (stage.form == partial_form(phase)) index += reduction_state(graph, stage).size();
  }
  return index;
}

}  // namespace fuse::schedule
