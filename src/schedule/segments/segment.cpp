// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/segment.hpp"

#include <algorithm>
#include <utility>

namespace fuse::schedule {

using ir::NodeId;

std::string_view to_string(Stage::Form form) {
  switch (form) {
    case Stage::Form::element:
      return "element";
    case Stage::Form::row:
      return "row";
    case Stage::Form::inner_reduce:
      return "reduce";
    case Stage::Form::outer_reduce:
      return "column_reduce";
    case Stage::Form::column:
      return "column";
  }
  return "?";
}

Phase phase_of(const ir::Graph& graph, NodeId root, std::vector<NodeId> nodes, std::vector<NodeId> inputs) {
  const bool reduces = info(graph[root].op).relation == ir::Relation::reduce;
  const Stage only{.root = root, .form = reduces ? Stage::Form::inner_reduce : Stage::Form::element};
  return {.root = root,
          .nodes = std::move(nodes),
          .inputs = std::move(inputs),
          .results = {root},
          .stages = {only}};
}

Segment segment_of(Phase phase, GroupId group, std::string end) {
  Segment segment{.root = phase.root,
                  .nodes = phase.nodes,
                  .inputs = phase.inputs,
                  .results = phase.results,
                  .group = group,
                  .end = std::move(end)};
  segment.phases.push_back(std::move(phase));
  return segment;
}

NodeId element_of(const ir::Graph& graph, const Stage& stage) {
  if (stage.form == Stage::Form::element) return stage.root;
  return graph[stage.maximum.value_or(stage.root)].operands[0];
}

std::vector<NodeId> totals_of(const Stage& stage) {
  if (stage.maximum) return {*stage.maximum, stage.root};
  return {stage.root};
}

std::vector<DType> reduction_state(const ir::Graph& graph, const Stage& stage) {
  const DType element = graph[element_of(graph, stage)].type.dtype;
  if (stage.maximum) return {element, element};
  if (info(graph[stage.root].op).identity == ir::Identity::none) return {element, i64};
  return {element};
}

namespace {

const Stage* first_of(const Phase& phase, Stage::Form form) {
  const auto found = std::find_if(phase.stages.begin(), phase.stages.end(),
                                  [&](const Stage& stage) { return stage.form == form; });
  return found == phase.stages.end() ? nullptr : &*found;
}

}  // namespace

NodeId dominant(const Phase& phase) {
  for (const Stage::Form form : {Stage::Form::inner_reduce, Stage::Form::outer_reduce}) {
    if (const Stage* stage = first_of(phase, form)) return stage->root;
  }
  return phase.root;
}

LoopShape loop_shape(const ir::Graph& graph, const Phase& phase) {
  LoopShape shape = loop_shape(graph, graph[dominant(phase)]);
  if (first_of(phase, Stage::Form::inner_reduce) || !has_columns(phase)) return shape;
  std::swap(shape.kept, shape.reduced);
  shape.is_reduced.flip();
  shape.inner = !shape.inner;
  return shape;
}

bool has_columns(const Phase& phase) { return first_of(phase, Stage::Form::outer_reduce) != nullptr; }

int last_pass(const std::vector<Stage>& stages) {
  int last = 0;
  for (const Stage& stage : stages) {
    if (stage.form != Stage::Form::column) last = std::max(last, stage.pass);
  }
  return last;
}

std::string stages_text(const ir::Graph& graph, const std::vector<Stage>& stages) {
  std::string text;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) text += stages[i].pass == stages[i - 1].pass ? ", " : " | ";
    const std::vector<NodeId> totals = totals_of(stages[i]);
    for (const NodeId id : totals) {
      text += id == totals.front() ? "" : " with ";
      text += graph.value_name(id) + ' ' + std::string(to_string(graph[id].op));
    }
  }
  return text;
}

std::string_view to_string(Segment::Kind kind) {
  switch (kind) {
    case Segment::Kind::kernel:
      return "kernel";
    case Segment::Kind::gemm:
      return "gemm";
    case Segment::Kind::custom:
      return "custom";
  }
  return "?";
}

}  // namespace fuse::schedule
