// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/stitch.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <optional>
#include <unordered_map>

#include "analysis/merge_graph.hpp"
#include "ir/graph/fixed_values.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/fusion/segment_graph.hpp"
#include "schedule/fusion/stage_rules.hpp"
#include "schedule/mapping/schedule.hpp"
#include "schedule/segments/argument_limit.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

// Bounds on one kernel, so that its text and its registers stay small whatever the graph.
constexpr std::size_t most_stages = 24;
constexpr std::size_t most_others =
    16;  // clusters that a segment is tried with though it reads nothing from them
constexpr std::ptrdiff_t most_reductions = 5;  // ptxas spills from 7 reductions of mixed types on
constexpr std::size_t most_nodes = 600;        // counted once for each stage that may compute them again

struct Cluster {
  std::vector<Member> members{};  // in segment order
  Frame frame{};
  std::size_t nodes = 0;
  std::vector<NodeId> inputs{};     // sorted; values of members among them
  std::vector<SymbolId> symbols{};  // sorted
  Segment whole{};                  // the segment of several members that stay together
};

class Stitcher {
 public:
  Stitcher(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser, const Target& target,
           Partition& cut)
      : graph_(graph),
        rules_(rules),
        chooser_(chooser),
        target_(target),
        cut_(cut),
        segments_(graph, cut),
        fixed_(ir::fixed_values(graph)),
        cluster_of_(cut.segments.size(), nobody),
        order_(segments_.order()) {}

  std::vector<Refusal> run() {
    std::unordered_map<GroupId, std::vector<SegmentId>> of_group;
    std::vector<GroupId> order;
    for (SegmentId id = 0; id < cut_.segments.size(); ++id) {
      const GroupId group = cut_.segments[id].group;
      if (group == no_group) continue;
      if (of_group[group].empty()) order.push_back(group);
      of_group[group].push_back(id);
    }
    for (const GroupId group : order) {
      if (of_group[group].size() > 1) grow(of_group[group]);
    }
    const std::size_t grown = clusters_.size();
    for (std::size_t i = 0; i < grown; ++i) judge(i);
    rebuild();
    return std::move(refusals_);
  }

 private:
  const Segment& segment(SegmentId id) const { return cut_.segments[id]; }

  static NodeId number_of(SegmentId id) { return static_cast<NodeId>(id); }

  /// What runs once for the parameters stays a kernel of its own, and so do what writes over its input and
  /// what was cut off for its size.
  bool is_candidate(const Segment& segment) const {
    if (segment.kind != Segment::Kind::kernel || segment.in_place() || fixed_[segment.root] ||
        segment.end == "size")
      return false;
    return info(graph_[segment.root].op).relation != Relation::scan;
  }

  void grow(const std::vector<SegmentId>& segments) {
    const std::size_t first = clusters_.size();
    for (const SegmentId id : segments) {
      if (is_candidate(segment(id)) && joins_any(id, first)) continue;
      const Frame frame = frame_of(graph_, segment(id).root);
      const auto form = frame.reduces ? Stage::Form::inner_reduce : Stage::Form::element;
      cluster_of_[id] = clusters_.size();
      clusters_.push_back({{{id, segment(id).root, form, 0}},
                           frame,
                           segment(id).nodes.size(),
                           segment(id).inputs,
                           segments_.symbols[id]});
    }
  }

  /// The makers of its inputs are tried first, the latest before the others.
  bool joins_any(SegmentId id, std::size_t first) {
    std::vector<std::size_t> wanted;
    for (const SegmentId producer : segments_.producers[id]) {
      const std::size_t cluster = cluster_of_[producer];
      if (cluster != nobody && cluster >= first) wanted.push_back(cluster);
    }
    std::sort(wanted.rbegin(), wanted.rend());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    if (std::any_of(wanted.begin(), wanted.end(), [&](std::size_t cluster) { return joins(id, cluster); })) {
      return true;
    }
    const std::size_t others = std::min(most_others, clusters_.size() - first);
    for (std::size_t cluster = clusters_.size() - others; cluster < clusters_.size(); ++cluster) {
      if (std::find(wanted.begin(), wanted.end(), cluster) == wanted.end() && joins(id, cluster)) return true;
    }
    return false;
  }

  bool joins(SegmentId id, std::size_t number) {
    Cluster& cluster = clusters_[number];
    const Segment& added = segment(id);
    if (!is_candidate(segment(cluster.members.front().segment))) return false;
    if (cluster.members.size() == most_stages) return false;
    if (cluster.nodes + added.nodes.size() > most_nodes) return false;
    Cluster grown = cluster;
    grown.nodes += added.nodes.size();
    grown.inputs = merged(grown.inputs, added.inputs);
    grown.symbols = merged(grown.symbols, segments_.symbols[id]);
    if (!reframe(grown, id)) return false;
    const std::optional<Member> member =
        place(graph_, grown.frame, id, added, segments_.reads[id], grown.members);
    if (!member) return false;
    grown.members.push_back(*member);
    if (!fits(grown)) return false;
    const NodeId mine = number_of(id), theirs = number_of(cluster.members.front().segment);
    if (order_.would_cycle(mine, theirs)) return false;
    order_.merge(mine, theirs);
    cluster = std::move(grown);
    cluster_of_[id] = number;
    return true;
  }

  /// Loops without a reduction become those of an added one; loops of columns become those of rows.
  bool reframe(Cluster& cluster, SegmentId added) const {
    const Frame frame = frame_of(graph_, segment(added).root);
    const bool rows_of_columns =
        frame.inner && !cluster.frame.inner && frame.is_reduced != cluster.frame.is_reduced;
    if (!frame.reduces || (cluster.frame.reduces && !rows_of_columns)) return true;
    std::vector<SegmentId> segments;
    for (const Member& member : cluster.members) segments.push_back(member.segment);
    return set_members(cluster, frame, segments);
  }

  /// False where one of the segments, in their order, cannot be a stage.
  bool set_members(Cluster& cluster, const Frame& frame, const std::vector<SegmentId>& segments) const {
    cluster.frame = frame;
    cluster.members.clear();
    for (const SegmentId id : segments) {
      const std::optional<Member> member =
          place(graph_, frame, id, segment(id), segments_.reads[id], cluster.members);
      if (!member) return false;
      cluster.members.push_back(*member);
    }
    return true;
  }

  bool fits(const Cluster& cluster) const {
    std::size_t inputs = cluster.inputs.size();
    for (const Member& member : cluster.members) {
      inputs -=
          std::binary_search(cluster.inputs.begin(), cluster.inputs.end(), segment(member.segment).root);
    }
    const std::size_t arguments = inputs + cluster.members.size() + cluster.symbols.size();
    if (inputs > rules_.max_inputs || bytes_an_argument * arguments > rules_.argument_bytes) return false;
    if (count(cluster, Stage::Form::inner_reduce) > most_reductions) return false;
    std::vector<NodeId> columns;
    for (const Member& member : cluster.members) {
      if (member.form == Stage::Form::outer_reduce) columns.push_back(member.root);
    }
    return columns.empty() || can_keep_columns(graph_, columns, target_);
  }

  static std::ptrdiff_t count(const Cluster& cluster, Stage::Form form) {
    return std::count_if(cluster.members.begin(), cluster.members.end(),
                         [&](const Member& member) { return member.form == form; });
  }

  bool used_outside(SegmentId id, const Cluster& cluster) const {
    if (segments_.returned[id] || cut_.views.of.contains(segment(id).root)) return true;
    return std::any_of(segments_.read_by[id].begin(), segments_.read_by[id].end(), [&](SegmentId reader) {
      return std::none_of(cluster.members.begin(), cluster.members.end(),
                          [&](const Member& member) { return member.segment == reader; });
    });
  }

  Segment assembled(const Cluster& cluster) const {
    Phase whole;
    std::vector<NodeId> roots;
    for (const Member& member : cluster.members) {
      const Segment& part = segment(member.segment);
      whole.nodes = merged(whole.nodes, part.nodes);
      whole.inputs = merged(whole.inputs, part.inputs);
      roots.push_back(part.root);
      const bool stored = used_outside(member.segment, cluster);
      if (stored) whole.results.push_back(part.root);
      // What nobody outside reads is computed again where it is needed, unless a reduction makes it.
      const bool reduces =
          member.form == Stage::Form::inner_reduce || member.form == Stage::Form::outer_reduce;
      if (stored || reduces) {
        whole.stages.push_back({.root = part.root, .form = member.form, .pass = member.pass});
      }
    }
    std::erase_if(whole.inputs,
                  [&](NodeId input) { return std::find(roots.begin(), roots.end(), input) != roots.end(); });
    std::sort(whole.results.begin(), whole.results.end());
    std::sort(whole.stages.begin(), whole.stages.end(), [](const Stage& a, const Stage& b) {
      return std::pair(a.pass, a.root) < std::pair(b.pass, b.root);
    });
    whole.root = whole.results.back();
    const Segment& last = segment(segments_.maker[whole.root]);
    return segment_of(std::move(whole), last.group, last.end);
  }

  /// Its choices are made once, on demand. A segment that cannot be a kernel counts as one that never ends.
  double seconds(Segment& segment) const {
    if (!segment.chosen) segment.chosen = chosen_by(chooser_, graph_, segment, target_);
    return segment.chosen ? segment.chosen->seconds : std::numeric_limits<double>::infinity();
  }

  /// One kernel has one way to lay its loops over the device: stages that would fill it by themselves may
  /// lose more than launches and traffic gain. Rows and columns may still be better off apart from each
  /// other.
  void judge(std::size_t number) {
    Cluster& cluster = clusters_[number];
    if (cluster.members.size() < 2) return keep_apart(cluster);
    cluster.whole = assembled(cluster);
    const double together = seconds(cluster.whole);
    if (std::optional<std::array<Cluster, 2>> halves = split(cluster)) {
      double apart = 0;
      for (const Cluster& half : *halves) {
        Segment alone = assembled(half);
        apart += seconds(alone);
      }
      if (stays_together(cluster.whole, together, apart)) return;
      refuse(cluster, together, apart);
      clusters_[number] = std::move((*halves)[0]);
      clusters_.push_back(std::move((*halves)[1]));
      judge(number);
      return judge(clusters_.size() - 1);
    }
    double alone = 0;
    for (const Member& member : cluster.members) alone += seconds(cut_.segments[member.segment]);
    if (stays_together(cluster.whole, together, alone)) return;
    refuse(cluster, together, alone);
    keep_apart(cluster);
  }

  /// There is nothing to ask where no chooser has choices.
  bool stays_together(const Segment& whole, double together, double apart) const {
    const bool gains = together <= apart;
    if (!whole.chosen) return gains;
    return decided(rules_.decide, ir::Question::stitch, graph_, whole.root, gains,
                   [&] { return whole.nodes; });
  }

  /// Splits rows from what is made from columns; none where there are no columns.
  std::optional<std::array<Cluster, 2>> split(const Cluster& cluster) const {
    std::array<std::vector<SegmentId>, 2> segments;
    NodeId column = 0;
    for (const Member& member : cluster.members) {
      const bool reduces = member.form == Stage::Form::outer_reduce;
      segments[reduces || member.form == Stage::Form::column].push_back(member.segment);
      if (reduces) column = member.root;
    }
    std::array<Cluster, 2> halves;
    if (segments[1].empty() || !set_members(halves[0], cluster.frame, segments[0]) ||
        !set_members(halves[1], frame_of(graph_, column), segments[1])) {
      return std::nullopt;
    }
    return halves;
  }

  void refuse(const Cluster& cluster, double together, double apart) {
    std::vector<NodeId> roots;
    for (const Member& member : cluster.members) roots.push_back(member.root);
    const GroupId group = segment(cluster.members.front().segment).group;
    refusals_.push_back(no_gain(group, std::move(roots), together, apart));
  }

  static void keep_apart(Cluster& cluster) { cluster.members.clear(); }

  /// Clusters become segments, in an order that respects dependencies and otherwise keeps the old one.
  void rebuild() {
    analysis::MergeGraph kept(segments_.order());
    for (Cluster& cluster : clusters_) {
      for (const Member& member : cluster.members) {
        const std::vector<NodeId>& results = cluster.whole.results;
        cut_.stored[member.root] = std::find(results.begin(), results.end(), member.root) != results.end();
        kept.merge(number_of(member.segment), number_of(cluster.members.front().segment));
      }
    }
    std::unordered_map<NodeId, Cluster*> whole;
    for (Cluster& cluster : clusters_) {
      if (!cluster.members.empty()) whole[kept.find(number_of(cluster.members.front().segment))] = &cluster;
    }
    std::vector<Segment> segments;
    for (const NodeId name : kept.topological()) {
      const auto found = whole.find(name);
      segments.push_back(std::move(found == whole.end() ? cut_.segments[name] : found->second->whole));
    }
    cut_.segments = std::move(segments);
  }

  static constexpr std::size_t nobody = SegmentGraph::nobody;

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const Target& target_;
  Partition& cut_;
  const SegmentGraph segments_;
  const std::vector<bool> fixed_;
  std::vector<std::size_t> cluster_of_;
  analysis::MergeGraph order_;  // which segments may become one without a cycle
  std::vector<Cluster> clusters_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> stitch(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                            const Target& target, Partition& cut) {
  return Stitcher(graph, rules, chooser, target, cut).run();
}

}  // namespace fuse::schedule
