// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/costly_columns.hpp"

#include <algorithm>
#include <unordered_set>

#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr std::int64_t most_column_bytes = 16 << 10;  // of one value

bool reduces(const ir::Graph& graph, const Phase& phase) {
  return info(graph[dominant(phase)].op).relation == Relation::reduce;
}

/// Whether the phase computes the value of what it reads alone, and with a costly op.
bool is_costly(const ir::Graph& graph, const Phase& phase, NodeId value) {
  std::unordered_set<NodeId> seen = {value};
  std::vector<NodeId> work = {value};
  bool costly = false;
  while (!work.empty()) {
    const NodeId id = work.back();
    work.pop_back();
    if (!std::binary_search(phase.nodes.begin(), phase.nodes.end(), id)) continue;
    const Relation relation = info(graph[id].op).relation;
    const bool stage = std::any_of(phase.stages.begin(), phase.stages.end(),
                                   [&](const Stage& each) { return each.root == id || each.maximum == id; });
    if (stage || relation == Relation::reduce || relation == Relation::scan) return false;
    costly = costly || info(graph[id].op).has(ir::Trait::costly);
    for (const NodeId operand : graph[id].operands) {
      if (seen.insert(operand).second) work.push_back(operand);
    }
  }
  return costly;
}

}  // namespace

std::vector<NodeId> costly_columns(const ir::Graph& graph, const Phase& phase) {
  std::vector<NodeId> result;
  if (!reduces(graph, phase)) return result;
  const LoopShape shape = loop_shape(graph, phase);
  for (const NodeId id : phase.nodes) {
    if (!repeats_in_rows(graph, graph[id], shape)) continue;
    const NodeId value = graph[id].operands[0];
    const std::int64_t elements = product(graph[value].type.dims).max();
    const std::int64_t most = most_column_bytes / static_cast<std::int64_t>(size_of(graph[value].type.dtype));
    if (elements == 0 || elements > most) continue;  // no array has no elements
    if (is_costly(graph, phase, value)) result.push_back(value);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::int64_t bytes_of_costly_columns(const ir::Graph& graph, const Phase& phase) {
  std::int64_t bytes = 0;
  for (const NodeId id : costly_columns(graph, phase))
    bytes += product(graph[id].type.dims).max() * static_cast<std::int64_t>(size_of(graph[id].type.dtype));
  return bytes;
}

std::string defect_of_costly_columns(const ir::Graph& graph, const Phase& phase, const Choices& choices) {
  if (!choices.columns_once) return "";
  if (splits_rows(choices)) return "columns_once needs blocks that do not share rows";
  if (costly_columns(graph, phase).empty())
    return "columns_once is for costly values that a broadcast repeats in each row, of which it has none";
  return "";
}

}  // namespace fuse::schedule
