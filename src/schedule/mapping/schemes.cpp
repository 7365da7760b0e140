// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/schemes.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>

#include "schedule/segments/transposed.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// Values that something in the segment reads, and those that one phase reads of another.
struct Readers {
  std::unordered_set<NodeId> any{}, other_phases{};

  Readers(const ir::Graph& graph, const Segment& segment) {
    for (const NodeId id : segment.nodes) {
      for (const NodeId operand : graph[id].operands) any.insert(operand);
    }
    for (const Phase& phase : segment.phases) other_phases.insert(phase.inputs.begin(), phase.inputs.end());
  }
};

Scheme scheme_of(const ir::Graph& graph, NodeId id, const Stage* stage, const PhaseSchedule& phase,
                 const Readers& readers, bool regional) {
  const bool reduces = stage && stage->form == Stage::Form::inner_reduce;
  // Blocks pass on its partials, whoever reads the whole.
  if (reduces && phase.choices.cluster() > 1) return Scheme::cluster;
  if (reduces && splits_rows(phase.choices)) return Scheme::global;
  if (stage && stage->form == Stage::Form::outer_reduce) return Scheme::global;
  if (!readers.any.contains(id)) return Scheme::independent;
  if (walks_tiles(phase.choices)) {
    const std::vector<NodeId> values = transposed(graph, phase.computes).value().nodes;
    if (std::find(values.begin(), values.end(), id) != values.end()) return Scheme::regional;
  }
  if (stage && readers.other_phases.contains(id)) return regional ? Scheme::regional : Scheme::global;
  return reduces ? Scheme::regional : Scheme::local;
}

}  // namespace

std::string_view to_string(Scheme scheme) {
  switch (scheme) {
    case Scheme::independent:
      return "independent";
    case Scheme::local:
      return "local";
    case Scheme::regional:
      return "regional";
    case Scheme::cluster:
      return "cluster";
    case Scheme::global:
      return "global";
  }
  return "?";
}

std::string_view to_string(Dominance dominance) {
  switch (dominance) {
    case Dominance::none:
      return "none";
    case Dominance::dominant:
      return "dominant";
    case Dominance::sub_dominant:
      return "sub-dominant";
  }
  return "?";
}

std::vector<NodeScheme> schemes_of(const ir::Graph& graph, const Schedule& schedule) {
  const Readers readers(graph, schedule.segment);
  std::unordered_map<NodeId, NodeScheme> found;
  std::size_t number = 0;
  for (const PhaseSchedule& phase : schedule.phases) {
    const std::vector<Stage>& stages = phase.computes.stages;
    const NodeId first = dominant(phase.computes);
    for (const NodeId id : phase.computes.nodes) {
      const auto stage = std::find_if(stages.begin(), stages.end(), [&](const Stage& each) {
        return each.root == id || each.maximum == id;
      });
      const bool is_stage = stage != stages.end();
      const Dominance dominance = id == first ? Dominance::dominant
                                  : is_stage  ? Dominance::sub_dominant
                                              : Dominance::none;
      const NodeScheme made{
          id, scheme_of(graph, id, is_stage ? &*stage : nullptr, phase, readers, schedule.segment.regional()),
          dominance, number};
      // What phases compute again belongs to each of them; a stage belongs to one.
      if (const auto [at, added] = found.emplace(id, made); !added && is_stage) at->second = made;
    }
    ++number;
  }
  std::vector<NodeScheme> result;
  for (const NodeId id : schedule.segment.nodes) result.push_back(found.at(id));
  return result;
}

std::string schemes_text(const ir::Graph& graph, const Schedule& schedule) {
  std::string text;
  const std::vector<NodeScheme> all = schemes_of(graph, schedule);
  for (const Scheme scheme : {Scheme::regional, Scheme::cluster, Scheme::global, Scheme::independent}) {
    std::string values;
    for (const NodeScheme& each : all) {
      if (each.scheme == scheme) values += ' ' + graph.value_name(each.node);
    }
    if (values.empty()) continue;
    text += (text.empty() ? "" : ", ") + std::string(to_string(scheme)) + values;
  }
  return text;
}

}  // namespace fuse::schedule
