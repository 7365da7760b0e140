// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/staged.hpp"

#include <algorithm>

#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/online_softmax.hpp"

namespace fuse::schedule {

std::optional<Segment> across_rows(const ir::Graph& graph, const Segment& segment) {
  Segment across = segment;
  bool reduces = false;
  for (Stage& stage : across.stages) {
    if (stage.form == Stage::Form::row) {
      stage.form = Stage::Form::column;
      continue;
    }
    if (stage.form != Stage::Form::reduce || stage.pass > 0 || loop_shape(graph, graph[stage.root]).inner)
      return std::nullopt;
    stage.form = Stage::Form::column_reduce;
    reduces = true;
  }
  return reduces ? std::optional(across) : std::nullopt;
}

Segment staged(const ir::Graph& graph, const Segment& segment, const Choices& choices) {
  if (choices.online) return with_online_sums(graph, segment).value_or(segment);
  if (choices.across) return across_rows(graph, segment).value_or(segment);
  return segment;
}

}  // namespace fuse::schedule
