// SPDX-License-Identifier: Apache-2.0
#include "schedule/groups/parallel_stitch.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <unordered_set>

namespace fuse::schedule {
namespace {

using Id = GroupGraph::Id;
using Branch = std::vector<Id>;
using Branches = std::vector<Branch>;

constexpr std::size_t most_virtual = 7;    // branches of a virtual tail or head (4.3)
constexpr std::size_t most_composed = 64;  // ops that one level looks at together; a launch takes few more

class Stitcher {
 public:
  Stitcher(GroupGraph& groups, const ParallelModel& model, const ir::Decide& decide)
      : groups_(groups), model_(model), decide_(decide) {}

  void run() {
    for (const Branches& set : common_producer()) compose(set);
    for (const Branches& set : common_consumer()) compose(set);
    for (const Branches& set : independent()) compose(set);
  }

 private:
  bool is_unit(Id id) const { return groups_.grouped(id); }
  /// Compute-bound ops use up the device by themselves; a user's kernel is never fused.
  bool is_candidate(Id id) const {
    return groups_.type(id) != GroupClass::contraction && groups_.type(id) != GroupClass::boundary;
  }

  /// Groups that wait for as many calls as each other may run at one time. So may those after which no call
  /// comes: whatever waits for them can wait longer. Others together would lengthen a chain of calls.
  int time_of(Id id) const { return groups_.calls(id).after == 0 ? -1 : groups_.calls(id).before; }

  std::vector<Id> units(std::vector<Id> ids) const {
    std::erase_if(ids, [&](Id id) { return !is_unit(id); });
    return ids;
  }
  std::vector<Id> producers(Id id) const { return units(groups_.merge_graph().producers(id)); }
  std::vector<Id> consumers(Id id) const { return units(groups_.merge_graph().consumers(id)); }
  std::vector<Id> all_units() const { return units(groups_.merge_graph().topological()); }

  /// Walks along a branch, away from its common end, until the path forks or joins. What joins on the way
  /// forward, or forks on the way backward, belongs to other branches too and stays out.
  Branch walk(Id id, bool forward) const {
    Branch branch;
    while (is_candidate(id)) {
      const std::vector<Id> behind = forward ? producers(id) : consumers(id);
      if (behind.size() > 1) break;
      branch.push_back(id);
      const std::vector<Id> ahead = forward ? consumers(id) : producers(id);
      if (ahead.size() != 1) break;
      id = ahead.front();
    }
    return branch;
  }

  std::vector<Branches> around(bool forward) const {
    std::vector<Branches> sets;
    for (const Id end : all_units()) {
      const std::vector<Id> heads = forward ? consumers(end) : producers(end);
      if (heads.size() < 2) continue;
      Branches set;
      for (const Id head : heads) {
        Branch branch = walk(head, forward);
        if (!branch.empty()) set.push_back(std::move(branch));
      }
      if (set.size() > 1) sets.push_back(std::move(set));
    }
    return sets;
  }
  std::vector<Branches> common_producer() const { return around(true); }
  std::vector<Branches> common_consumer() const { return around(false); }

  /// Kernels of one class are mapped to threads alike, so a virtual tail or head joins branches that end in
  /// the same class.
  std::vector<Branches> independent() const {
    for (const bool tail : {true, false}) {
      std::map<GroupClass, Branches> by_class;
      for (const Id id : all_units()) {
        if (!is_candidate(id) || !(tail ? consumers(id) : producers(id)).empty()) continue;
        by_class[groups_.type(id)].push_back(walk(id, !tail));
      }
      std::vector<Branches> sets;
      for (const auto& [type, branches] : by_class) {
        for (std::size_t first = 0; first + 1 < branches.size(); first += most_virtual) {
          const std::size_t last = std::min(branches.size(), first + most_virtual);
          if (last - first < 2) break;
          sets.emplace_back(branches.begin() + static_cast<std::ptrdiff_t>(first),
                            branches.begin() + static_cast<std::ptrdiff_t>(last));
        }
      }
      if (!sets.empty()) return sets;
    }
    return {};
  }

  /// Composes one op of each branch at a time.
  void compose(const Branches& set) {
    for (std::size_t depth = 0;; ++depth) {
      std::vector<Id> level;
      for (const Branch& branch : set) {
        // A group that an earlier set has merged has another name, or more in it than the branch says.
        if (depth < branch.size() && groups_.find(branch[depth]) == branch[depth])
          level.push_back(branch[depth]);
      }
      const bool deeper = std::count_if(set.begin(), set.end(),
                                        [&](const Branch& branch) { return depth + 1 < branch.size(); }) > 1;
      compose_ops(level);
      if (!deeper) return;
    }
  }

  void compose_ops(const std::vector<Id>& level) {
    std::map<int, std::vector<Id>> by_time;
    for (const Id id : level) by_time[time_of(id)].push_back(id);
    for (auto& [time, ids] : by_time) {
      std::sort(ids.begin(), ids.end());
      for (std::size_t begin = 0; begin + 1 < ids.size(); begin += most_composed) {
        const std::size_t count = std::min(most_composed, ids.size() - begin);
        compose_some(std::span(ids).subspan(begin, count));
      }
    }
  }

  /// The costs say which of them gain together; the questions and the merges go by their order in the graph,
  /// which no cost changes.
  void compose_some(std::span<const Id> ids) {
    std::vector<std::pair<double, Id>> cost;
    for (const Id id : ids) cost.emplace_back(model_.alone(id), id);
    std::stable_sort(cost.begin(), cost.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    std::vector<Id> sorted;
    for (const auto& [seconds, id] : cost) sorted.push_back(id);
    const auto gains = [&](std::size_t first, std::size_t last) {
      double alone = 0;
      for (std::size_t i = first; i < last; ++i) alone += cost[i].first;
      return alone - model_.together(std::span(sorted).subspan(first, last - first)) > 0;
    };
    std::map<Id, std::size_t> set_of;  // by cost; alone: none
    std::size_t number = 0;
    for (const auto& [first, last] : compose_level(ids.size(), gains)) {
      for (std::size_t i = first; i < last; ++i) set_of[sorted[i]] = number;
      ++number;
    }
    std::vector<std::vector<Id>> sets;
    for (const Id id : ids) {
      const auto set = std::find_if(sets.begin(), sets.end(), [&](const std::vector<Id>& each) {
        const auto mine = set_of.find(id), theirs = set_of.find(each.front());
        const bool same = mine != set_of.end() && theirs != set_of.end() && mine->second == theirs->second;
        return composed(each.front(), id, same);
      });
      set == sets.end() ? sets.push_back({id}) : set->push_back(id);
    }
    for (const std::vector<Id>& set : sets) {
      if (set.size() > 1) stitch(set);
    }
  }

  bool composed(Id first, Id id, bool by_cost) const {
    const auto nodes = [&] {
      std::vector<ir::NodeId> both = groups_.merge_graph().members(first);
      const std::vector<ir::NodeId> more = groups_.merge_graph().members(id);
      both.insert(both.end(), more.begin(), more.end());
      std::sort(both.begin(), both.end());
      return both;
    };
    return decided(decide_, ir::Question::compose, groups_.graph(), id, by_cost, nodes);
  }

  void stitch(std::span<const Id> ids) {
    Id group = ids.front();
    for (const Id id : ids.subspan(1)) {
      const Id other = groups_.find(id);
      if (other == group || groups_.judge_parallel(group, other).refused) continue;
      const auto wider = std::max(bit(groups_.type(group)), bit(groups_.type(other)));
      group = groups_.merge(group, other, static_cast<GroupClass>(wider));
    }
  }

  GroupGraph& groups_;
  const ParallelModel& model_;
  const ir::Decide& decide_;
};

double bytes_of(const ir::Node& node) {
  return static_cast<double>(product(node.type.dims).hint()) * static_cast<double>(size_of(node.type.dtype));
}

}  // namespace

std::vector<std::pair<std::size_t, std::size_t>> compose_level(
    std::size_t count, const std::function<bool(std::size_t, std::size_t)>& gains) {
  std::vector<std::pair<std::size_t, std::size_t>> composed;
  std::size_t m = 0, k = count;  // the ops m .. m + k - 1
  while (m < count && k >= 2) {
    if (gains(m, m + k)) {
      composed.emplace_back(m, m + k);
      m += k;
      k = count - m;
    } else {
      --k;
    }
    if (k == 1 && m + 1 < count) {  // the leading op is too heavy for any company
      ++m;
      k = count - m;
    }
  }
  return composed;
}

ParallelModel contention_model(const ir::Graph& graph, const GroupGraph& groups, const Target& target) {
  struct Load {
    double seconds = 0;  // time of its traffic if the device were full
    double share = 1;    // share of the device that its blocks fill
  };
  const auto load = [&graph, &groups, &target](Id id) {
    constexpr double elements_a_block = 1024;
    double bytes = 0;
    for (const ir::NodeId input : groups.input_values(id)) bytes += bytes_of(graph[input]);
    for (const ir::NodeId output : groups.output_values(id)) bytes += bytes_of(graph[output]);
    const double elements = static_cast<double>(product(groups.loops(id).dims).hint());
    const double resident = static_cast<double>(target.sms) * target.max_threads_per_sm / 256;
    return Load{bytes / target.bandwidth, std::clamp(elements / elements_a_block / resident, 1e-3, 1.0)};
  };
  // The slowdown for each further device's worth of blocks in one kernel. It was not measured on a device.
  constexpr double contention = 0.05;
  return {
      .alone =
          [load, &target](Id id) {
            const Load l = load(id);
            return target.launch_seconds + l.seconds / l.share;
          },
      .together =
          [load, &graph, &groups, &target](std::span<const Id> ids) {
            double longest = 0, traffic = 0, share = 0;
            std::unordered_set<ir::NodeId> read;
            for (const Id id : ids) {
              const Load l = load(id);
              longest = std::max(longest, l.seconds / l.share);
              traffic += l.seconds;
              share += l.share;
              // What several read is read once.
              for (const ir::NodeId input : groups.input_values(id)) {
                if (!read.insert(input).second) traffic -= bytes_of(graph[input]) / target.bandwidth;
              }
            }
            return target.launch_seconds +
                   std::max(longest, traffic) * (1 + contention * std::max(0.0, share - 1));
          },
  };
}

void stitch_parallel(GroupGraph& groups, const ParallelModel& model, const ir::Decide& decide) {
  Stitcher(groups, model, decide).run();
}

}  // namespace fuse::schedule
