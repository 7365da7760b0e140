// SPDX-License-Identifier: Apache-2.0
#include "schedule/segments/online_softmax.hpp"

#include <algorithm>
#include <unordered_map>

#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Op;
using ir::Relation;

/// What a value repeats along dims, through reshapes that add dims of extent 1.
NodeId repeated(const ir::Graph& graph, NodeId id) {
  while (info(graph[id].op).relation == Relation::broadcast ||
         info(graph[id].op).relation == Relation::reshape)
    id = graph[id].operands[0];
  return id;
}

/// The number of reductions on the longest path to each value, where a sum stands beside its maximum.
std::unordered_map<NodeId, int> passes_of(const ir::Graph& graph, const Phase& phase,
                                          const std::unordered_map<NodeId, NodeId>& maxima) {
  std::unordered_map<NodeId, int> passes;
  for (const NodeId id : phase.nodes) {
    int pass = 0;
    for (const NodeId operand : graph[id].operands) {
      const auto found = passes.find(operand);
      if (found == passes.end()) continue;
      const bool reduced = info(graph[operand].op).relation == Relation::reduce;
      pass = std::max(pass, found->second + reduced);
    }
    const auto maximum = maxima.find(id);
    passes[id] = maximum == maxima.end() ? pass : passes.at(maximum->second);
  }
  return passes;
}

}  // namespace

std::optional<NodeId> maximum_below(const ir::Graph& graph, const ir::Node& total) {
  if (total.op != Op::reduce_sum) return std::nullopt;
  const ir::Node& power = graph[total.operands[0]];
  if (power.op != Op::exp || graph[power.operands[0]].op != Op::sub) return std::nullopt;
  const ir::Node& distance = graph[power.operands[0]];
  const NodeId x = distance.operands[0], maximum = repeated(graph, distance.operands[1]);
  const ir::Node& greatest = graph[maximum];
  const DType dtype = graph[x].type.dtype;
  if (greatest.op != Op::reduce_max || greatest.operands[0] != x || (dtype != f32 && dtype != f64))
    return std::nullopt;
  const bool one_type = greatest.type.dtype == dtype && distance.type.dtype == dtype &&
                        power.type.dtype == dtype && total.type.dtype == dtype;
  const bool one_shape = loop_shape(graph, greatest).is_reduced == loop_shape(graph, total).is_reduced &&
                         power.type.dims == graph[x].type.dims;
  return one_type && one_shape ? std::optional(maximum) : std::nullopt;
}

std::optional<Phase> with_online_softmax(const ir::Graph& graph, const Phase& phase) {
  if (has_columns(phase)) return std::nullopt;
  const std::vector<NodeId>& results = phase.results;
  std::unordered_map<NodeId, NodeId> maxima;  // by sum
  const auto is_stage = [&](NodeId id) {
    return std::any_of(phase.stages.begin(), phase.stages.end(),
                       [&](const Stage& stage) { return stage.root == id && !stage.maximum; });
  };
  const auto is_taken = [&](NodeId id) {
    return std::any_of(maxima.begin(), maxima.end(), [&](const auto& pair) { return pair.second == id; });
  };
  for (const Stage& stage : phase.stages) {
    if (stage.form != Stage::Form::inner_reduce || stage.maximum) continue;
    const std::optional<NodeId> maximum = maximum_below(graph, graph[stage.root]);
    if (!maximum || !is_stage(*maximum) || is_taken(*maximum)) continue;
    if (std::find(results.begin(), results.end(), *maximum) == results.end()) maxima[stage.root] = *maximum;
  }
  if (maxima.empty()) return std::nullopt;
  Phase online = phase;
  std::erase_if(online.stages, [&](const Stage& stage) { return is_taken(stage.root); });
  const std::unordered_map<NodeId, int> passes = passes_of(graph, phase, maxima);
  for (Stage& stage : online.stages) {
    stage.pass = passes.at(stage.root);
    if (const auto found = maxima.find(stage.root); found != maxima.end()) stage.maximum = found->second;
  }
  std::sort(online.stages.begin(), online.stages.end(), [](const Stage& a, const Stage& b) {
    return std::pair(a.pass, a.root) < std::pair(b.pass, b.root);
  });
  return online;
}

}  // namespace fuse::schedule
