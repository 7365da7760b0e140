// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/staged.hpp"

#include <algorithm>

#include "schedule/segments/loop_shape.hpp"
#include "schedule/segments/online_softmax.hpp"

namespace fuse::schedule {

std::optional<Phase> across_rows(const ir::Graph& graph, const Phase& phase) {
  Phase across = phase;
  bool reduces = false;
  for (Stage& stage : across.stages) {
    if (stage.form == Stage::Form::row) {
      stage.form = Stage::Form::column;
      continue;
    }
    if (stage.form != Stage::Form::inner_reduce || stage.pass > 0 ||
        loop_shape(graph, graph[stage.root]).inner)
      return std::nullopt;
    stage.form = Stage::Form::outer_reduce;
    reduces = true;
  }
  return reduces ? std::optional(across) : std::nullopt;
}

Phase staged(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (choices.online_softmax) return with_online_softmax(graph, phase).value_or(phase);
  if (choices.across) return across_rows(graph, phase).value_or(phase);
  return phase;
}

}  // namespace fuse::schedule
