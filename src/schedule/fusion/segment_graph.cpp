// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/segment_graph.hpp"

#include <algorithm>
#include <unordered_map>

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
    for (const NodeId node : cut.segments[id].nodes)
      mentioned.insert(mentioned.end(), mentions.of(node).begin(), mentions.of(node).end());
    sort_unique(mentioned);
    symbols.push_back(std::move(mentioned));
  }
  order_overwrites(cut);
  for (const ir::Output& output : graph.outputs) {
    for (const NodeId value : values_behind(output.node)) returned[maker[value]] = true;
  }
}

void SegmentGraph::order_overwrites(const Partition& cut) {
  overwrites.resize(cut.segments.size());
  std::unordered_map<NodeId, std::vector<SegmentId>> users;  // of what is overwritten
  for (const auto& [value, before] : cut.in_place.of) users[before];
  if (users.empty()) return;
  for (SegmentId id = 0; id < cut.segments.size(); ++id) {
    for (const NodeId input : cut.segments[id].inputs) {
      const auto found = users.find(memory_of(cut, input));
      if (found != users.end()) found->second.push_back(id);
    }
  }
  for (const auto& [value, before] : cut.in_place.of) {
    const SegmentId writer = maker[value];
    const std::vector<SegmentId>& readers = users.at(before);
    overwrites[writer].insert(overwrites[writer].end(), readers.begin(), readers.end());
    if (maker[before] != nobody) overwrites[writer].push_back(maker[before]);
    std::erase(overwrites[writer], writer);  // it reads each element before it writes it
  }
}

std::vector<std::vector<NodeId>> SegmentGraph::order() const {
  std::vector<std::vector<NodeId>> below;
  for (SegmentId id = 0; id < producers.size(); ++id) {
    std::vector<SegmentId> before = producers[id];
    before.insert(before.end(), overwrites[id].begin(), overwrites[id].end());
    std::sort(before.begin(), before.end());
    before.erase(std::unique(before.begin(), before.end()), before.end());
    below.emplace_back(before.begin(), before.end());
  }
  return below;
}

}  // namespace fuse::schedule
