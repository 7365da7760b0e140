// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/overwrite_order.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <set>

#include "schedule/fusion/segment_graph.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using Edges = std::vector<std::vector<NodeId>>;

constexpr int most_rounds = 32;  // of taking one chain of each cycle back

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

/// For each, the number of the cycles that it is on; 0: none. What cycles share is one (strongly connected
/// components, by Tarjan, without recursion).
std::vector<std::uint32_t> cycles_of(const Edges& before) {
  struct Level {
    NodeId id;
    std::size_t next;
  };
  std::vector<std::uint32_t> found(before.size()), lowest(before.size()), cycle(before.size());
  std::vector<bool> open(before.size());
  std::vector<NodeId> stack;
  std::uint32_t time = 0, cycles = 0;
  for (NodeId root = 0; root < before.size(); ++root) {
    if (found[root]) continue;
    std::vector<Level> path = {{root, 0}};
    while (!path.empty()) {
      auto& [id, next] = path.back();
      if (next == 0) {
        found[id] = lowest[id] = ++time;
        stack.push_back(id);
        open[id] = true;
      }
      if (next < before[id].size()) {
        const NodeId to = before[id][next++];
        if (!found[to]) {
          path.push_back({to, 0});
        } else if (open[to]) {
          lowest[id] = std::min(lowest[id], found[to]);
        }
        continue;
      }
      const NodeId done = id;
      path.pop_back();
      if (!path.empty()) lowest[path.back().id] = std::min(lowest[path.back().id], lowest[done]);
      if (lowest[done] != found[done]) continue;
      const bool alone = stack.back() == done;
      cycles += !alone;
      for (NodeId member = before.size(); member != done;) {
        member = stack.back();
        stack.pop_back();
        open[member] = false;
        cycle[member] = alone ? 0 : cycles;
      }
    }
  }
  return cycle;
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
    // Of each cycle the last chain, or all where that has gone on for long.
    const std::vector<std::uint32_t> cycles = cycles_of(before);
    std::set<std::uint32_t> broken;
    for (std::size_t i = chains.size(); i-- > 0;) {
      const auto cycle = std::find_if(chains[i].updates.begin(), chains[i].updates.end(),
                                      [&](NodeId update) { return cycles[segments.maker[update]] != 0; });
      if (cycle == chains[i].updates.end()) continue;
      if (!broken.insert(cycles[segments.maker[*cycle]]).second && round < most_rounds) continue;
      choice_of(chains[i]).refused = fmt::format("{} and what it overwrites wait for each other",
                                                 graph.value_name(chains[i].updates.back()));
      take_back(chains[i]);
      chains.erase(chains.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }
  if (chains.empty()) partition.in_place.of = known;
  for (const UpdateChain& chain : chains) choice_of(chain).refused.clear();
}

}  // namespace fuse::schedule
