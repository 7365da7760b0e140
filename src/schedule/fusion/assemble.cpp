// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/assemble.hpp"

#include <algorithm>
#include <unordered_map>
#include <utility>

#include "analysis/merge_graph.hpp"

namespace fuse::schedule {

using ir::NodeId;

Segment assembled(const Partition& cut, const std::vector<SegmentId>& segments) {
  Segment whole;
  for (const SegmentId id : segments) {
    const Segment& phase = cut.segments[id];
    whole.nodes = merged(whole.nodes, phase.nodes);
    whole.inputs = merged(whole.inputs, phase.inputs);
    whole.results = merged(whole.results, phase.results);
    whole.phases.push_back(phase.phases[0]);
    if (id != segments.front() && phase.root < whole.root) continue;
    whole.root = phase.root;
    whole.end = phase.end;
    whole.group = phase.group;
  }
  std::erase_if(whole.inputs, [&](NodeId input) {
    return std::binary_search(whole.results.begin(), whole.results.end(), input);
  });
  return whole;
}

void replace_segments(const SegmentGraph& graph, std::vector<Assembly> assemblies, Partition& cut) {
  analysis::MergeGraph kept(graph.order());
  for (const Assembly& each : assemblies) {
    for (const SegmentId id : each.segments)
      kept.merge(static_cast<NodeId>(id), static_cast<NodeId>(each.segments.front()));
  }
  std::unordered_map<NodeId, Segment*> wholes;
  for (Assembly& each : assemblies)
    wholes[kept.find(static_cast<NodeId>(each.segments.front()))] = &each.whole;
  std::vector<Segment> segments;
  for (const NodeId name : kept.topological()) {
    const auto found = wholes.find(name);
    segments.push_back(std::move(found == wholes.end() ? cut.segments[name] : *found->second));
  }
  cut.segments = std::move(segments);
}

}  // namespace fuse::schedule
