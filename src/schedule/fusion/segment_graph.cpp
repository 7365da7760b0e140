// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/segment_graph.hpp"

#include <algorithm>

namespace fuse::schedule {

using ir::NodeId;

SegmentGraph::SegmentGraph(const ir::Graph& graph, const Partition& cut)
    : maker(graph.nodes.size(), nobody), read_by(cut.segments.size()), returned(cut.segments.size()) {
  for (SegmentId id = 0; id < cut.segments.size(); ++id) {
    for (const NodeId result : cut.segments[id].results) maker[result] = id;
  }
  // The values that segments make in the memory of what is read.
  const auto values_behind = [&](NodeId read) {
    std::vector<NodeId> values = written_values(cut.views, cut.storage[read]);
    values.push_back(read);
    std::erase_if(values, [&](NodeId value) { return maker[value] == nobody; });
    return values;
  };
  const Mentions mentions(graph);
  for (SegmentId id = 0; id < cut.segments.size(); ++id) {
    std::vector<Read> values;
    std::vector<SegmentId> makers;
    for (const NodeId input : cut.segments[id].inputs) {
      for (const NodeId value : values_behind(input)) {
        values.push_back({input, maker[value], value == input});
        makers.push_back(maker[value]);
      }
    }
    std::sort(makers.begin(), makers.end());
    makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
    for (const SegmentId each : makers) read_by[each].push_back(id);
    reads.push_back(std::move(values));
    producers.push_back(std::move(makers));
    std::vector<SymbolId> mentioned;
    for (const NodeId node : cut.segments[id].nodes) mentioned = merged(mentioned, mentions.of(node));
    symbols.push_back(std::move(mentioned));
  }
  for (const ir::Output& output : graph.outputs) {
    for (const NodeId value : values_behind(output.node)) returned[maker[value]] = true;
  }
}

std::vector<std::vector<NodeId>> SegmentGraph::order() const {
  std::vector<std::vector<NodeId>> below;
  for (const std::vector<SegmentId>& makers : producers) below.emplace_back(makers.begin(), makers.end());
  return below;
}

}  // namespace fuse::schedule
