// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/piece_graph.hpp"

#include <algorithm>

namespace fuse::schedule {

using ir::NodeId;

PieceGraph::PieceGraph(const ir::Graph& graph, const Partition& cut)
    : maker(graph.nodes.size(), nobody), read_by(cut.pieces.size()), returned(cut.pieces.size()) {
  for (PieceId id = 0; id < cut.pieces.size(); ++id) {
    for (const NodeId result : cut.pieces[id].results) maker[result] = id;
  }
  // The values that pieces make of what is read.
  const auto values_behind = [&](NodeId read) {
    std::vector<NodeId> values = written_values(cut.views, cut.storage[read]);
    values.push_back(read);
    std::erase_if(values, [&](NodeId value) { return maker[value] == nobody; });
    return values;
  };
  const Mentions mentions(graph);
  for (PieceId id = 0; id < cut.pieces.size(); ++id) {
    std::vector<Read> values;
    std::vector<PieceId> makers;
    for (const NodeId input : cut.pieces[id].inputs) {
      for (const NodeId value : values_behind(input)) {
        values.push_back({input, maker[value], value == input});
        makers.push_back(maker[value]);
      }
    }
    std::sort(makers.begin(), makers.end());
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    for (const PieceId each : makers) read_by[each].push_back(id);
    reads.push_back(std::move(values));
    producers.push_back(std::move(makers));
    std::vector<SymbolId> mentioned;
    for (const NodeId node : cut.pieces[id].nodes) mentioned = merged(mentioned, mentions.of(node));
    symbols.push_back(std::move(mentioned));
  }
  for (const ir::Output& output : graph.outputs) {
    for (const NodeId value : values_behind(output.node)) returned[maker[value]] = true;
  }
}

std::vector<std::vector<NodeId>> PieceGraph::order() const {
  std::vector<std::vector<NodeId>> below;
  for (const std::vector<PieceId>& makers : producers) below.emplace_back(makers.begin(), makers.end());
  return below;
}

}  // namespace fuse::schedule
