// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/horizontal_fusion.hpp"

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "ir/graph/fixed_values.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/fusion/assemble.hpp"
#include "schedule/fusion/segment_graph.hpp"
#include "schedule/segments/canonical.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

// Bounds on one kernel, so that its text stays small.
constexpr std::size_t most_horizontal_parts = 16;
constexpr std::size_t most_horizontal_nodes = 600;
constexpr std::size_t most_beside = 64;  // segments of a level that are looked at together
/// Steps by which a kernel that nothing waits for may be put off, to find others beside it.
constexpr int most_delay = 32;

class Neighbours {
 public:
  Neighbours(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser, const Target& target,
             Partition& cut)
      : graph_(graph),
        rules_(rules),
        chooser_(chooser),
        target_(target),
        cut_(cut),
        segments_(graph, cut),
        fixed_(ir::fixed_values(graph)),
        below_(segments_.order()) {}

  std::vector<Refusal> run() {
    find_candidates();
    find_levels();
    const std::vector<std::vector<SegmentId>> levels = candidates_by_level();
    const bool several = std::any_of(levels.begin(), levels.end(),
                                     [](const std::vector<SegmentId>& level) { return level.size() > 1; });
    if (!several) return {};
    equal_ = equal_segments(graph_, cut_.segments, cut_.storage);
    for (const std::vector<SegmentId>& level : levels) fuse_level(level);
    if (!assemblies_.empty()) replace_segments(segments_, std::move(assemblies_), cut_);
    return std::move(refusals_);
  }

 private:
  /// What runs once for the parameters stays a kernel of its own. Phases of a cooperative kernel, and columns
  /// that blocks pass on to each other, need all blocks.
  void find_candidates() {
    candidate_.resize(cut_.segments.size());
    for (SegmentId id = 0; id < cut_.segments.size(); ++id) {
      const Segment& segment = cut_.segments[id];
      candidate_[id] = segment.kind == Segment::Kind::kernel && segment.phases.size() == 1 &&
                       !fixed_[segment.root] && !has_columns(segment.phases[0]);
    }
  }

  /// The number of steps on the longest chain to each segment, or a later number, if nothing waits for it
  /// until then. Segments of a level depend on nothing of it, so any of them may become one. A candidate
  /// that can wait goes to a level with a candidate that cannot, else to one with any other.
  void find_levels() {
    level_.resize(below_.size());
    for (SegmentId id = 0; id < below_.size(); ++id) {
      for (const NodeId before : below_[id]) level_[id] = std::max(level_[id], level_[before] + 1);
    }
    const int last = level_.empty() ? 0 : *std::max_element(level_.begin(), level_.end());
    std::vector<int> all(static_cast<std::size_t>(last) + 1), fixed = all, latest(below_.size(), last);
    const auto at = [](std::vector<int>& count, int level) -> int& {
      return count[static_cast<std::size_t>(level)];
    };
    for (SegmentId id = below_.size(); id-- > 0;) {
      for (const NodeId before : below_[id]) latest[before] = std::min(latest[before], latest[id] - 1);
      if (!candidate_[id]) continue;
      ++at(all, level_[id]);
      if (latest[id] == level_[id]) ++at(fixed, level_[id]);
    }
    std::fill(latest.begin(), latest.end(), last);
    for (SegmentId id = below_.size(); id-- > 0;) {
      const int own = level_[id], end = std::min(latest[id], own + most_delay);
      const auto next_in = [&](std::vector<int>& count) {
        int level = own + 1;
        while (level <= end && at(count, level) == 0) ++level;
        return level;
      };
      if (candidate_[id] && at(fixed, own) == 0) {
        int later = next_in(fixed);
        if (later > end && at(all, own) == 1) later = next_in(all);
        if (later <= end) {
          --at(all, own);
          ++at(all, later);
          level_[id] = later;
        }
      }
      for (const NodeId before : below_[id]) latest[before] = std::min(latest[before], level_[id] - 1);
    }
  }

  std::vector<std::vector<SegmentId>> candidates_by_level() const {
    std::vector<std::vector<SegmentId>> levels;
    for (SegmentId id = 0; id < level_.size(); ++id) {
      const auto level = static_cast<std::size_t>(level_[id]);
      if (levels.size() <= level) levels.resize(level + 1);
      if (candidate_[id]) levels[level].push_back(id);
    }
    return levels;
  }

  void fuse_level(const std::vector<SegmentId>& level) {
    for (std::size_t begin = 0; begin + 1 < level.size(); begin += most_beside) {
      const auto first = level.begin() + static_cast<std::ptrdiff_t>(begin);
      fuse_some({first, first + static_cast<std::ptrdiff_t>(std::min(most_beside, level.size() - begin))});
    }
  }

  /// The costs say which of them gain together; the questions go by their order in the graph, which no cost
  /// changes.
  void fuse_some(const std::vector<SegmentId>& ids) {
    const std::map<SegmentId, std::size_t> set_of = sets_by_cost(ids);
    const auto number = [&](SegmentId id) {
      const auto found = set_of.find(id);
      return found == set_of.end() ? ids.size() : found->second;
    };
    std::vector<std::vector<SegmentId>> sets;
    for (const SegmentId id : ids) {
      const auto set = std::find_if(sets.begin(), sets.end(), [&](const std::vector<SegmentId>& each) {
        const bool by_cost = number(id) != ids.size() && number(id) == number(each.front());
        if (!by_cost && !rules_.decide) return false;
        std::vector<SegmentId> grown = each;
        grown.push_back(id);
        return fits(grown) && asked(each.front(), id, by_cost);
      });
      set == sets.end() ? sets.push_back({id}) : set->push_back(id);
    }
    for (const std::vector<SegmentId>& set : sets) {
      if (set.size() < 2) continue;
      if (std::optional<Segment> whole = fused(set)) assemblies_.push_back({set, std::move(*whole)});
    }
  }

  bool asked(SegmentId first, SegmentId id, bool by_cost) const {
    const Segment &one = cut_.segments[first], &other = cut_.segments[id];
    return decided(rules_.decide, ir::Question::horizontal, graph_, other.root, by_cost,
                   [&] { return merged(one.nodes, other.nodes); });
  }

  /// A number for each that gains with others: as many as the limits allow, or, where these together do not
  /// gain, those of them whose blocks have one size.
  std::map<SegmentId, std::size_t> sets_by_cost(const std::vector<SegmentId>& ids) {
    std::map<SegmentId, std::size_t> set_of;
    std::size_t sets = 0;
    const auto take = [&](const std::vector<SegmentId>& set) {
      for (const SegmentId id : set) set_of[id] = sets;
      ++sets;
    };
    const auto settle = [&](const std::vector<SegmentId>& set) {
      if (set.size() < 2) return;
      if (gains(set)) return take(set);
      std::map<int, std::vector<SegmentId>> by_size;
      for (const SegmentId id : set) by_size[chosen(id)->choices.block_threads()].push_back(id);
      for (const auto& [size, alike] : by_size) {
        if (alike.size() > 1 && alike.size() < set.size() && gains(alike)) take(alike);
      }
    };
    std::vector<SegmentId> set;
    for (const SegmentId id : ids) {
      if (!chosen(id) || seconds(id) > longest_part_in_launches * target_.launch_seconds) continue;
      set.push_back(id);
      if (fits(set)) continue;
      set.pop_back();
      settle(set);
      set = {id};
    }
    settle(set);
    return set_of;
  }

  bool gains(const std::vector<SegmentId>& set) {
    const std::optional<Segment> whole = fused(set);
    if (!whole) return false;
    // A replayed graph would have one node less for each, which costs less than a launch.
    double apart = target_.launch_seconds - target_.node_seconds;
    for (const SegmentId id : set) apart += seconds(id) - target_.launch_seconds + target_.node_seconds;
    if (whole->chosen->seconds < apart) return true;
    refuse(set, whole->chosen->seconds, apart);
    return false;
  }

  /// What is moved for a row of a reduction or a scan, or for an element.
  double bytes_per_row(SegmentId id) const {
    const Phase& phase = cut_.segments[id].phases[0];
    const Relation relation = info(graph_[dominant(phase)].op).relation;
    const bool rows = relation == Relation::reduce || relation == Relation::scan;
    const Dim results =
        rows ? product(loop_shape(graph_, phase).kept) : product(graph_[phase.root].type.dims);
    return static_cast<double>(moved_bytes(graph_, phase)) /
           static_cast<double>(std::max<std::int64_t>(1, results.hint()));
  }

  /// None where no choices are for all of them.
  std::optional<Segment> fused(std::vector<SegmentId> set) {
    // The longest rows come first: a block of theirs that began late would run alone at the end. No cost
    // changes this order.
    std::stable_sort(set.begin(), set.end(),
                     [&](SegmentId a, SegmentId b) { return bytes_per_row(a) > bytes_per_row(b); });
    Segment whole = assembled(cut_, set);
    whole.between = Segment::Between::nothing;
    whole.chosen = chosen(set, whole);
    return whole.chosen ? std::optional(std::move(whole)) : std::nullopt;
  }

  bool fits(const std::vector<SegmentId>& group) const {
    const Segment whole = assembled(cut_, group);
    std::vector<SymbolId> symbols;
    for (const SegmentId id : group) symbols = merged(symbols, segments_.symbols[id]);
    const std::size_t arguments = whole.inputs.size() + whole.results.size() + symbols.size();
    return group.size() <= most_horizontal_parts && whole.inputs.size() <= rules_.max_inputs &&
           whole.nodes.size() <= most_horizontal_nodes &&
           bytes_an_argument * arguments <= rules_.argument_bytes;
  }

  /// How a segment runs alone.
  const std::optional<Chosen>& chosen(SegmentId id) {
    Segment& segment = cut_.segments[id];
    if (!segment.chosen) segment.chosen = chosen({id}, segment);
    return segment.chosen;
  }

  double seconds(SegmentId id) { return chosen(id).value().seconds; }

  /// How a kernel of these segments runs. Equal ones are asked for once.
  std::optional<Chosen> chosen(const std::vector<SegmentId>& group, const Segment& whole) {
    std::vector<std::uint32_t> forms;
    for (const SegmentId id : group) forms.push_back(equal_.form_of[id]);
    const auto [found, added] = choices_.try_emplace(std::move(forms));
    if (added) found->second = chosen_by(chooser_, graph_, whole, target_);
    return found->second;
  }

  void refuse(const std::vector<SegmentId>& group, double together, double apart) {
    std::vector<NodeId> roots;
    const GroupId first = cut_.segments[group.front()].group;
    for (const SegmentId id : group) {
      if (cut_.segments[id].group != first) return;
      roots.push_back(cut_.segments[id].root);
    }
    if (first != no_group) refusals_.push_back(no_gain(first, std::move(roots), together, apart));
  }

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const Target& target_;
  Partition& cut_;
  const SegmentGraph segments_;
  const std::vector<bool> fixed_;
  const std::vector<std::vector<NodeId>> below_;  // per segment, what has to run before it
  std::vector<bool> candidate_;
  std::vector<int> level_;
  EqualSegments equal_;
  std::map<std::vector<std::uint32_t>, std::optional<Chosen>> choices_;  // by the forms of the segments
  std::vector<Assembly> assemblies_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> fuse_horizontally(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                                       const Target& target, Partition& cut) {
  return Neighbours(graph, rules, chooser, target, cut).run();
}

}  // namespace fuse::schedule
