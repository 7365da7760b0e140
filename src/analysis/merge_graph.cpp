// SPDX-License-Identifier: Apache-2.0
#include "analysis/merge_graph.hpp"

#include <algorithm>
#include <functional>
#include <queue>

namespace fuse::analysis {

using NodeId = ir::NodeId;

MergeGraph::MergeGraph(const ir::Graph& graph) {
  build(graph.nodes.size());
  for (NodeId node = 0; node < set_of_.size(); ++node) next_[backward][node] = graph[node].operands;
  number_forests();
}

MergeGraph::MergeGraph(const std::vector<std::vector<NodeId>>& operands) {
  build(operands.size());
  next_[backward] = operands;
  number_forests();
}

void MergeGraph::build(std::size_t size) {
  count_ = size;
  set_of_.resize(size);
  members_.resize(size);
  scanned_.resize(size);
  for (NodeId node = 0; node < size; ++node) {
    set_of_[node] = node;
    members_[node] = {node};
  }
  for (const Direction direction : {forward, backward}) {
    next_[direction].resize(size);
    mark_[direction].resize(size);
  }
  order_ = MaintainedOrder(size);
}

/// Completes the edges, and numbers each forest in preorder: depth first, roots and edges in order.
void MergeGraph::number_forests() {
  for (NodeId node = 0; node < set_of_.size(); ++node) {
    std::vector<NodeId>& operands = next_[backward][node];
    std::sort(operands.begin(), operands.end());
    operands.erase(std::unique(operands.begin(), operands.end()), operands.end());
    for (const NodeId operand : operands) next_[forward][operand].push_back(node);
  }
  for (const Direction direction : {forward, backward}) {
    const auto& next = next_[direction];
    auto& interval = interval_[direction];
    interval.resize(next.size());
    std::vector<bool> seen(next.size());
    std::vector<std::pair<NodeId, std::size_t>> path;
    NodeId number = 0;
    const auto enter = [&](NodeId node) {
      if (seen[node]) return;
      seen[node] = true;
      interval[node].first = number++;
      path.emplace_back(node, 0);
    };
    for (std::size_t i = 0; i < next.size(); ++i) {
      enter(static_cast<NodeId>(direction == forward ? i : next.size() - 1 - i));
      while (!path.empty()) {
        const NodeId node = path.back().first;
        if (path.back().second < next[node].size()) {
          enter(next[node][path.back().second++]);
        } else {
          interval[node].second = number;
          path.pop_back();
        }
      }
    }
  }
}

bool MergeGraph::tree_path(NodeId from, NodeId to) const {
  const auto holds = [](std::pair<NodeId, NodeId> interval, NodeId number) {
    return interval.first <= number && number < interval.second;
  };
  return holds(interval_[forward][from], interval_[forward][to].first) ||
         holds(interval_[backward][to], interval_[backward][from].first);
}

std::vector<NodeId> MergeGraph::members(NodeId set) const {
  std::vector<NodeId> result = members_[set_of_[set]];
  std::sort(result.begin(), result.end());
  return result;
}

std::vector<NodeId> MergeGraph::neighbours(Direction direction, NodeId set) const {
  const NodeId name = set_of_[set];
  std::vector<NodeId> result;
  for (const NodeId node : next_[direction][name]) {
    if (set_of_[node] != name) result.push_back(set_of_[node]);
  }
  std::sort(result.begin(), result.end());
  result.erase(std::unique(result.begin(), result.end()), result.end());
  return result;
}

std::vector<NodeId> MergeGraph::topological() const {
  std::vector<NodeId> first(set_of_.size(), ~NodeId{0});
  std::vector<std::size_t> waits_for(set_of_.size());
  for (NodeId node = 0; node < set_of_.size(); ++node)
    first[set_of_[node]] = std::min(first[set_of_[node]], node);
  std::priority_queue<NodeId, std::vector<NodeId>, std::greater<>> ready;  // ordered by first nodes
  // An edge may stand in one list more often than in the other, which cleans itself: count by the same lists.
  std::vector<std::vector<NodeId>> consumers(set_of_.size());
  for (NodeId name = 0; name < set_of_.size(); ++name) {
    if (set_of_[name] != name) continue;
    for (const NodeId node : next_[backward][name]) {
      if (set_of_[node] == name) continue;
      consumers[set_of_[node]].push_back(name);
      ++waits_for[name];
    }
    if (waits_for[name] == 0) ready.push(first[name]);
  }
  std::vector<NodeId> result;
  while (!ready.empty()) {
    const NodeId name = set_of_[ready.top()];
    ready.pop();
    result.push_back(name);
    for (const NodeId consumer : consumers[name]) {
      if (--waits_for[consumer] == 0) ready.push(first[consumer]);
    }
  }
  return result;
}

void MergeGraph::start_scan(Side& side, NodeId set) {
  side.current = set;
  side.cursor = 0;
  side.scan = ++scan_;
}

/// A few nodes whose sets lie just before the goal.
void MergeGraph::take_samples(Side& side) {
  const auto& list = next_[side.direction == forward ? backward : forward][side.goal];
  for (std::size_t i = 0; i < list.size() && i < 8 && side.sample_count < side.samples.size(); ++i) {
    const NodeId set = set_of_[list[i]];
    if (set != side.goal && set != side.start) side.samples[side.sample_count++] = list[i];
  }
}

/// A path of the original graph leads from the node to the goal. None passes through start or goal, for then
/// there would be a cycle already.
bool MergeGraph::proven(const Side& side, NodeId node) const {
  for (std::size_t i = 0; i < side.sample_count; ++i) {
    const NodeId sample = side.samples[i];
    if (side.direction == forward ? tree_path(node, sample) : tree_path(sample, node)) return true;
  }
  return false;
}

MergeGraph::Step MergeGraph::step(Side& side, const Side& other) {
  std::vector<NodeId>* list = &next_[side.direction][side.current];
  while (side.cursor == list->size()) {
    if (side.stack.empty()) return Step::exhausted;
    start_scan(side, side.stack.back());
    side.stack.pop_back();
    list = &next_[side.direction][side.current];
  }
  ++visited_;
  const NodeId node = (*list)[side.cursor], set = set_of_[node];
  if (set == side.current || scanned_[set] == side.scan) {  // inside by now, or there already
    (*list)[side.cursor] = list->back();
    list->pop_back();
    return Step::more;
  }
  scanned_[set] = side.scan;
  ++side.cursor;
  if (set == side.goal) return side.current != side.start || side.count_direct ? Step::met : Step::more;
  if (side.direction == forward ? !order_.before(set, side.goal) : !order_.before(side.goal, set))
    return Step::more;
  std::uint64_t& mark = mark_[side.direction][set];
  if (mark == epoch_) return Step::more;
  mark = epoch_;
  if (mark_[other.direction][set] == epoch_ || proven(side, node)) return Step::met;
  side.found.push_back(set);
  side.stack.push_back(set);
  return Step::more;
}

bool MergeGraph::search(NodeId first, NodeId second, bool count_direct) {
  ++epoch_;
  Side sides[2] = {{.direction = forward, .start = first, .goal = second, .count_direct = count_direct},
                   {.direction = backward, .start = second, .goal = first, .count_direct = count_direct}};
  for (Side& side : sides) {
    start_scan(side, side.start);
    take_samples(side);
  }
  for (bool turn = false;; turn = !turn) {
    switch (step(sides[turn], sides[!turn])) {
      case Step::more:
        continue;
      case Step::met:
        return true;
      case Step::exhausted:
        proof_ = {first, second, sides[turn].direction, std::move(sides[turn].found)};
        return false;
    }
  }
}

bool MergeGraph::would_cycle(NodeId a, NodeId b) {
  NodeId first = set_of_[a], second = set_of_[b];
  if (first == second) return false;
  if (order_.before(second, first)) std::swap(first, second);
  if (proof_.first == first && proof_.second == second) return false;
  return search(first, second, false);
}

bool MergeGraph::reaches(NodeId a, NodeId b) { return search(set_of_[a], set_of_[b], true); }

NodeId MergeGraph::merge(NodeId a, NodeId b) {
  if (same(a, b)) return set_of_[a];
  if (would_cycle(a, b)) {
    throw Error({.kind = ErrorKind::internal,
                 .code = ErrorCode::internal,
                 .message = "the sets of %" + std::to_string(a) + " and %" + std::to_string(b) +
                            " would form a cycle"});
  }
  // What the searched side found moves across the other set, keeping its order; both can then stand
  // there.
  std::vector<NodeId>& found = proof_.found;
  std::sort(found.begin(), found.end(), [&](NodeId x, NodeId y) { return order_.before(x, y); });
  const bool at_second = proof_.exhausted == forward;
  const NodeId position = at_second ? proof_.second : proof_.first;
  NodeId behind = position;
  for (const NodeId set : found) {
    if (at_second) {
      order_.move_after(set, behind);
      behind = set;
    } else {
      order_.move_before(set, position);
    }
  }
  NodeId into = proof_.first, from = proof_.second;
  if (members_[into].size() < members_[from].size()) std::swap(into, from);
  if (into != position) order_.replace(position, into);
  proof_ = {};
  for (const NodeId node : members_[from]) set_of_[node] = into;
  const auto append = [](std::vector<NodeId>& to, std::vector<NodeId>& what) {
    if (to.size() < what.size()) to.swap(what);
    to.insert(to.end(), what.begin(), what.end());
    std::vector<NodeId>().swap(what);
  };
  append(members_[into], members_[from]);
  for (auto& next : next_) append(next[into], next[from]);
  --count_;
  return into;
}

}  // namespace fuse::analysis
