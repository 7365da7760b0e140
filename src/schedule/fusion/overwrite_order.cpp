// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/overwrite_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <queue>

#include "schedule/fusion/segment_graph.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using Edges = std::vector<std::vector<NodeId>>;

constexpr int most_rounds = 32;  // of taking one chain back; after them, all that wait are taken back

Edges reversed(const Edges& before) {
  Edges after(before.size());
  for (NodeId id = 0; id < before.size(); ++id) {
    for (const NodeId each : before[id]) after[each].push_back(id);
  }
  return after;
}

/// Numbers with those of `before` first, else in order; what is on a cycle, and after one, is left out.
std::vector<NodeId> topological(const Edges& before, const Edges& after) {
  std::vector<std::size_t> missing;
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;
  for (NodeId id = 0; id < before.size(); ++id) {
    missing.push_back(before[id].size());
    if (before[id].empty()) ready.push(id);
  }
  std::vector<NodeId> order;
  while (!ready.empty()) {
    const NodeId id = order.emplace_back(ready.top());
    ready.pop();
    for (const NodeId each : after[id]) {
      if (--missing[each] == 0) ready.push(each);
    }
  }
  return order;
}

/// What is on a cycle, or between two.
std::vector<bool> waiting(const Edges& before, const Edges& after) {
  std::vector<bool> result(before.size(), true);
  for (const NodeId id : topological(before, after)) result[id] = false;
  for (const NodeId id : topological(after, before)) result[id] = false;
  return result;
}

}  // namespace

void order_overwrites(const ir::Graph& graph, Partition& partition, std::vector<UpdateChain>& chains,
                      const std::function<void(const UpdateChain&)>& take_back) {
  const std::map<NodeId, NodeId> known = partition.in_place.of;
  const auto choice_of = [&](const UpdateChain& chain) -> InPlaceChoice& {
    std::vector<InPlaceChoice>& choices = partition.in_place.choices;
    return *std::find_if(choices.begin(), choices.end(),
                         [&](const InPlaceChoice& each) { return each.output == chain.output; });
  };
  for (int round = 0; !chains.empty(); ++round) {
    partition.in_place.of = known;
    for (const UpdateChain& chain : chains) chain.add_to(partition.in_place.of);
    const SegmentGraph segments(graph, partition);
    const Edges before = segments.order(), after = reversed(before);
    const std::vector<NodeId> order = topological(before, after);
    if (order.size() == before.size()) {
      std::vector<Segment> sorted;
      for (const NodeId id : order) sorted.push_back(std::move(partition.segments[id]));
      partition.segments = std::move(sorted);
      break;
    }
    const std::vector<bool> waits = waiting(before, after);
    const auto is_waiting = [&](const UpdateChain& chain) {
      return std::any_of(chain.updates.begin(), chain.updates.end(),
                         [&](NodeId update) { return waits[segments.maker[update]]; });
    };
    const auto back = [&](const UpdateChain& chain) {
      choice_of(chain).refused = fmt::format("{} and what it overwrites wait for each other",
                                             graph.value_name(chain.updates.back()));
      take_back(chain);
    };
    if (round == most_rounds) {
      const auto left = std::stable_partition(chains.begin(), chains.end(), std::not_fn(is_waiting));
      std::for_each(left, chains.end(), back);
      chains.erase(left, chains.end());
      continue;
    }
    const auto last = std::find_if(chains.rbegin(), chains.rend(), is_waiting);
    back(*last);
    chains.erase(std::next(last).base());
  }
  if (chains.empty()) partition.in_place.of = known;
  for (const UpdateChain& chain : chains) choice_of(chain).refused.clear();
}

}  // namespace fuse::schedule
