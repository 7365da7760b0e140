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
    case Stage::Form::reduce:
      return "reduce";
    case Stage::Form::column_reduce:
      return "column_reduce";
    case Stage::Form::column:
      return "column";
  }
  return "?";
}

Segment segment_of(const ir::Graph& graph, NodeId root, std::vector<NodeId> nodes,
                   std::vector<NodeId> inputs) {
  const bool reduces = info(graph[root].op).relation == ir::Relation::reduce;
  const Stage only{.root = root, .form = reduces ? Stage::Form::reduce : Stage::Form::element};
  return {.root = root,
          .nodes = std::move(nodes),
          .inputs = std::move(inputs),
          .results = {root},
          .stages = {only}};
}

Piece piece_of(Segment segment, GroupId group, std::string end) {
  Piece piece{.root = segment.root,
              .nodes = segment.nodes,
              .inputs = segment.inputs,
              .results = segment.results,
              .group = group,
              .end = std::move(end)};
  piece.phases.push_back(std::move(segment));
  return piece;
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

const Stage* first_of(const Segment& segment, Stage::Form form) {
  const auto found = std::find_if(segment.stages.begin(), segment.stages.end(),
                                  [&](const Stage& stage) { return stage.form == form; });
  return found == segment.stages.end() ? nullptr : &*found;
}

}  // namespace

NodeId dominant(const Segment& segment) {
  for (const Stage::Form form : {Stage::Form::reduce, Stage::Form::column_reduce}) {
    if (const Stage* stage = first_of(segment, form)) return stage->root;
  }
  return segment.root;
}

LoopShape loop_shape(const ir::Graph& graph, const Segment& segment) {
  LoopShape shape = loop_shape(graph, graph[dominant(segment)]);
  if (first_of(segment, Stage::Form::reduce) || !has_columns(segment)) return shape;
  std::swap(shape.kept, shape.reduced);
  shape.is_reduced.flip();
  shape.inner = !shape.inner;
  return shape;
}

bool has_columns(const Segment& segment) { return first_of(segment, Stage::Form::column_reduce) != nullptr; }

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

std::string_view to_string(Piece::Kind kind) {
  switch (kind) {
    case Piece::Kind::kernel:
      return "kernel";
    case Piece::Kind::gemm:
      return "gemm";
    case Piece::Kind::custom:
      return "custom";
  }
  return "?";
}

}  // namespace fuse::schedule
