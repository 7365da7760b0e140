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
#include "schedule/fusion/assemble.hpp"
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
    16;  // candidates that a segment is tried with though it reads nothing from them
constexpr std::ptrdiff_t most_reductions = 5;  // ptxas spills from 7 reductions of mixed types on
constexpr std::size_t most_nodes = 600;        // counted once for each stage that may compute them again

/// Segments that are judged as one kernel.
struct Candidate {
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
        candidate_of_(cut.segments.size(), nobody),
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
    const std::size_t grown = candidates_.size();
    for (std::size_t i = 0; i < grown; ++i) judge(i);
    rebuild();
    return std::move(refusals_);
  }

 private:
  const Segment& segment(SegmentId id) const { return cut_.segments[id]; }

  static NodeId number_of(SegmentId id) { return static_cast<NodeId>(id); }

  /// What runs once for the parameters stays a kernel of its own, and so do what writes over its input and
  /// what was cut off for its size.
  bool may_stitch(const Segment& segment) const {
    if (segment.kind != Segment::Kind::kernel || segment.in_place() || fixed_[segment.root] ||
        segment.end == "size")
      return false;
    return info(graph_[segment.root].op).relation != Relation::scan;
  }

  void grow(const std::vector<SegmentId>& segments) {
    const std::size_t first = candidates_.size();
    for (const SegmentId id : segments) {
      if (may_stitch(segment(id)) && try_add_to_any(id, first)) continue;
      const Frame frame = frame_of(graph_, segment(id).root);
      const auto form = frame.reduces ? Stage::Form::inner_reduce : Stage::Form::element;
      candidate_of_[id] = candidates_.size();
      candidates_.push_back({{{id, segment(id).root, form, 0}},
                             frame,
                             segment(id).nodes.size(),
                             segment(id).inputs,
                             segments_.symbols[id]});
    }
  }

  /// The makers of its inputs are tried first, the latest before the others.
  bool try_add_to_any(SegmentId id, std::size_t first) {
    std::vector<std::size_t> wanted;
    for (const SegmentId producer : segments_.producers[id]) {
      const std::size_t candidate = candidate_of_[producer];
      if (candidate != nobody && candidate >= first) wanted.push_back(candidate);
    }
    std::sort(wanted.rbegin(), wanted.rend());
    wanted.erase(std::unique(wanted.begin(), wanted.end()), wanted.end());
    if (std::any_of(wanted.begin(), wanted.end(),
                    [&](std::size_t candidate) { return try_add(id, candidate); })) {
      return true;
    }
    const std::size_t others = std::min(most_others, candidates_.size() - first);
    for (std::size_t candidate = candidates_.size() - others; candidate < candidates_.size(); ++candidate) {
      if (std::find(wanted.begin(), wanted.end(), candidate) == wanted.end() && try_add(id, candidate))
        return true;
    }
    return false;
  }

  /// Adds the segment to the candidate where both may be one kernel. False: they may not.
  bool try_add(SegmentId id, std::size_t number) {
    Candidate& candidate = candidates_[number];
    const Segment& added = segment(id);
    if (!may_stitch(segment(candidate.members.front().segment))) return false;
    if (candidate.members.size() == most_stages) return false;
    if (candidate.nodes + added.nodes.size() > most_nodes) return false;
    Candidate grown = candidate;
    grown.nodes += added.nodes.size();
    grown.inputs = merged(grown.inputs, added.inputs);
    grown.symbols = merged(grown.symbols, segments_.symbols[id]);
    if (!reframe(grown, id)) return false;
    const std::optional<Member> member =
        place(graph_, grown.frame, id, added, segments_.reads[id], grown.members);
    if (!member) return false;
    grown.members.push_back(*member);
    if (!fits(grown)) return false;
    const NodeId mine = number_of(id), theirs = number_of(candidate.members.front().segment);
    if (order_.would_cycle(mine, theirs)) return false;
    order_.merge(mine, theirs);
    candidate = std::move(grown);
    candidate_of_[id] = number;
    return true;
  }

  /// Loops without a reduction become those of an added one; loops of columns become those of rows.
  bool reframe(Candidate& candidate, SegmentId added) const {
    const Frame frame = frame_of(graph_, segment(added).root);
    const bool rows_of_columns =
        frame.inner && !candidate.frame.inner && frame.is_reduced != candidate.frame.is_reduced;
    if (!frame.reduces || (candidate.frame.reduces && !rows_of_columns)) return true;
    std::vector<SegmentId> segments;
    for (const Member& member : candidate.members) segments.push_back(member.segment);
    return set_members(candidate, frame, segments);
  }

  /// False where one of the segments, in their order, cannot be a stage.
  bool set_members(Candidate& candidate, const Frame& frame, const std::vector<SegmentId>& segments) const {
    candidate.frame = frame;
    candidate.members.clear();
    for (const SegmentId id : segments) {
      const std::optional<Member> member =
          place(graph_, frame, id, segment(id), segments_.reads[id], candidate.members);
      if (!member) return false;
      candidate.members.push_back(*member);
    }
    return true;
  }

  bool fits(const Candidate& candidate) const {
    std::size_t inputs = candidate.inputs.size();
    for (const Member& member : candidate.members) {
      inputs -=
          std::binary_search(candidate.inputs.begin(), candidate.inputs.end(), segment(member.segment).root);
    }
    const std::size_t arguments = inputs + candidate.members.size() + candidate.symbols.size();
    if (inputs > rules_.max_inputs || bytes_an_argument * arguments > rules_.argument_bytes) return false;
    if (count(candidate, Stage::Form::inner_reduce) > most_reductions) return false;
    return can_keep(candidate);
  }

  /// Whether threads can keep its columns, if it has any.
  bool can_keep(const Candidate& candidate) const {
    std::vector<NodeId> columns;
    for (const Member& member : candidate.members) {
      if (member.form == Stage::Form::outer_reduce) columns.push_back(member.root);
    }
    return columns.empty() || can_keep_columns(graph_, columns, target_);
  }

  static std::ptrdiff_t count(const Candidate& candidate, Stage::Form form) {
    return std::count_if(candidate.members.begin(), candidate.members.end(),
                         [&](const Member& member) { return member.form == form; });
  }

  bool used_outside(SegmentId id, const Candidate& candidate) const {
    if (segments_.returned[id] || cut_.views.of.contains(segment(id).root)) return true;
    return std::any_of(segments_.read_by[id].begin(), segments_.read_by[id].end(), [&](SegmentId reader) {
      return std::none_of(candidate.members.begin(), candidate.members.end(),
                          [&](const Member& member) { return member.segment == reader; });
    });
  }

  Segment assembled(const Candidate& candidate) const {
    Phase whole;
    std::vector<NodeId> roots;
    for (const Member& member : candidate.members) {
      const Segment& part = segment(member.segment);
      whole.nodes = merged(whole.nodes, part.nodes);
      whole.inputs = merged(whole.inputs, part.inputs);
      roots.push_back(part.root);
      const bool stored = used_outside(member.segment, candidate);
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
    Candidate& candidate = candidates_[number];
    if (candidate.members.size() < 2) return keep_apart(candidate);
    candidate.whole = assembled(candidate);
    const double together = seconds(candidate.whole);
    if (std::optional<std::array<Candidate, 2>> halves = split(candidate)) {
      double apart = 0;
      for (const Candidate& half : *halves) {
        Segment alone = assembled(half);
        apart += seconds(alone);
      }
      if (stays_together(candidate.whole, together, apart)) return;
      refuse(candidate, together, apart);
      return judge_both(number, std::move(*halves));
    }
    double alone = 0;
    for (const Member& member : candidate.members) alone += seconds(cut_.segments[member.segment]);
    if (stays_together(candidate.whole, together, alone)) return;
    refuse(candidate, together, alone);
    keep_runs(number);
  }

  void judge_both(std::size_t number, std::array<Candidate, 2> halves) {
    const std::size_t other = candidates_.size();
    candidates_[number] = std::move(halves[0]);
    candidates_.push_back(std::move(halves[1]));
    judge(number);
    judge(other);
  }

  /// There is nothing to ask where no chooser has choices.
  bool stays_together(const Segment& whole, double together, double apart) const {
    const bool gains = together <= apart;
    return whole.chosen ? asked(whole, gains) : gains;
  }

  bool asked(const Segment& whole, bool by_cost) const {
    return decided(rules_.decide, ir::Question::stitch, graph_, whole.root, by_cost,
                   [&] { return whole.nodes; });
  }

  /// Splits rows from what is made from columns; none where there are no columns.
  std::optional<std::array<Candidate, 2>> split(const Candidate& candidate) const {
    std::array<std::vector<SegmentId>, 2> segments;
    NodeId column = 0;
    for (const Member& member : candidate.members) {
      const bool reduces = member.form == Stage::Form::outer_reduce;
      segments[reduces || member.form == Stage::Form::column].push_back(member.segment);
      if (reduces) column = member.root;
    }
    std::array<Candidate, 2> halves;
    if (segments[1].empty() || !set_members(halves[0], candidate.frame, segments[0]) ||
        !set_members(halves[1], frame_of(graph_, column), segments[1])) {
      return std::nullopt;
    }
    return halves;
  }

  /// What is refused as one kernel may still gain in runs of consecutive members, each a kernel. The costs
  /// say in which; the questions go by the order of the members, which no cost changes.
  void keep_runs(std::size_t number) {
    std::vector<SegmentId> ids;
    for (const Member& member : candidates_[number].members) ids.push_back(member.segment);
    std::vector<std::vector<SegmentId>> by_cost, runs;
    if (ids.size() > 2) add_runs_by_cost(ids, true, by_cost);
    const auto together = [&](SegmentId a, SegmentId b) {
      return std::any_of(by_cost.begin(), by_cost.end(), [&](const std::vector<SegmentId>& run) {
        return std::count(run.begin(), run.end(), a) + std::count(run.begin(), run.end(), b) == 2;
      });
    };
    for (const SegmentId id : ids) {
      const bool gains = !runs.empty() && together(runs.back().front(), id);
      if ((gains || rules_.decide) && !runs.empty() && runs.back().size() + 1 < ids.size()) {
        std::vector<SegmentId> grown = runs.back();
        grown.push_back(id);
        const std::optional<Candidate> candidate = framed(grown);
        if (candidate && asked(candidate->whole, gains)) {
          runs.back() = std::move(grown);
          continue;
        }
      }
      runs.push_back({id});
    }
    keep_apart(candidates_[number]);
    for (const std::vector<SegmentId>& run : runs) {
      if (run.size() > 1) candidates_.push_back(*framed(run));
    }
  }

  /// Cuts the segments in two where these take least, and each of the two again, until each run takes no
  /// longer than its segments alone.
  void add_runs_by_cost(const std::vector<SegmentId>& ids, bool refused,
                        std::vector<std::vector<SegmentId>>& runs) {
    const double alone = seconds_alone(ids);
    if (!refused && seconds_together(ids) <= alone) return runs.push_back(ids);
    std::size_t best = 0;
    double least = alone;
    const auto time = [&](const std::vector<SegmentId>& part) {
      return std::min(seconds_alone(part), seconds_together(part));
    };
    for (std::size_t first = 1; ids.size() > 2 && first < ids.size(); ++first) {
      const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(first);
      const double sum = time({ids.begin(), middle}) + time({middle, ids.end()});
      if (sum < least) best = first, least = sum;
    }
    if (best == 0) return;
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(best);
    add_runs_by_cost({ids.begin(), middle}, false, runs);
    add_runs_by_cost({middle, ids.end()}, false, runs);
  }

  double seconds_alone(const std::vector<SegmentId>& ids) {
    double sum = 0;
    for (const SegmentId id : ids) sum += seconds(cut_.segments[id]);
    return sum;
  }

  double seconds_together(const std::vector<SegmentId>& ids) const {
    std::optional<Candidate> candidate = framed(ids);
    return candidate ? seconds(candidate->whole) : std::numeric_limits<double>::infinity();
  }

  /// The candidate of these segments, with the loops of the first that all of them fit; none where they fit
  /// none.
  std::optional<Candidate> framed(const std::vector<SegmentId>& segments) const {
    Candidate candidate;
    for (const SegmentId id : segments) {
      if (!set_members(candidate, frame_of(graph_, segment(id).root), segments) || !can_keep(candidate))
        continue;
      candidate.whole = assembled(candidate);
      return candidate;
    }
    return std::nullopt;
  }

  void refuse(const Candidate& candidate, double together, double apart) {
    std::vector<NodeId> roots;
    for (const Member& member : candidate.members) roots.push_back(member.root);
    const GroupId group = segment(candidate.members.front().segment).group;
    refusals_.push_back(no_gain(group, std::move(roots), together, apart));
  }

  static void keep_apart(Candidate& candidate) { candidate.members.clear(); }

  /// Candidates become segments.
  void rebuild() {
    std::vector<Assembly> assemblies;
    for (Candidate& candidate : candidates_) {
      if (candidate.members.empty()) continue;
      const std::vector<NodeId>& results = candidate.whole.results;
      Assembly& made = assemblies.emplace_back();
      for (const Member& member : candidate.members) {
        cut_.stored[member.root] = std::find(results.begin(), results.end(), member.root) != results.end();
        made.segments.push_back(member.segment);
      }
      made.whole = std::move(candidate.whole);
    }
    replace_segments(segments_, std::move(assemblies), cut_);
  }

  static constexpr std::size_t nobody = SegmentGraph::nobody;

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const Target& target_;
  Partition& cut_;
  const SegmentGraph segments_;
  const std::vector<bool> fixed_;
  std::vector<std::size_t> candidate_of_;
  analysis::MergeGraph order_;  // which segments may become one without a cycle
  std::vector<Candidate> candidates_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> stitch(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                            const Target& target, Partition& cut) {
  return Stitcher(graph, rules, chooser, target, cut).run();
}

}  // namespace fuse::schedule
