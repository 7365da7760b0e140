// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/cooperative_fusion.hpp"

#include <algorithm>
#include <optional>

#include "analysis/merge_graph.hpp"
#include "ir/graph/fixed_values.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/fusion/assemble.hpp"
#include "schedule/fusion/segment_graph.hpp"
#include "schedule/segments/staged.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

// Bounds on one kernel, so that its text and the registers of its longest phase stay small.
constexpr std::size_t most_phases = 8;
constexpr std::size_t most_cooperative_nodes = 600;

struct Chain {
  std::vector<SegmentId> segments{};  // in segment order
  Segment whole{};
  double gain = 0;  // seconds gained over kernels of their own
};

class Joiner {
 public:
  Joiner(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser, bool always,
         const Target& target, Partition& cut)
      : graph_(graph),
        rules_(rules),
        chooser_(chooser),
        always_(always),
        target_(target),
        cut_(cut),
        segments_(graph, cut),
        fixed_(ir::fixed_values(graph)),
        order_(segments_.order()),
        chain_of_(cut.segments.size(), nobody) {}

  std::vector<Refusal> run() {
    for (SegmentId id = 0; id < cut_.segments.size(); ++id) {
      if (!may_fuse(cut_.segments[id]) || try_add_to_any(id)) continue;
      chain_of_[id] = chains_.size();
      chains_.push_back({{id}, cut_.segments[id]});
    }
    double gain = 0;
    for (const Chain& chain : chains_) gain += chain.gain;
    // One more step zeroes the counters of all kernels.
    const bool pays = always_ || gain > target_.launch_seconds;
    bool cooperative = false;
    for (Chain& chain : chains_) {
      if (chain.segments.size() == 1) continue;
      if (always_ || asked(ir::Question::wait, chain.whole, pays)) {
        cooperative = true;
        continue;
      }
      const double together = chain.whole.chosen->seconds;
      refuse(chain.whole, together, together + chain.gain);
      chain.segments.clear();
    }
    if (!cooperative) return std::move(refusals_);
    rebuild();
    return std::move(refusals_);
  }

 private:
  static constexpr std::size_t nobody = SegmentGraph::nobody;

  /// What runs once for the parameters stays a kernel of its own; scans and what was cut for its size run
  /// with their own blocks.
  bool may_fuse(const Segment& segment) const {
    if (segment.kind != Segment::Kind::kernel || segment.group == no_group || segment.in_place())
      return false;
    if (fixed_[segment.root] || segment.end == "size") return false;
    return info(graph_[dominant(segment.phases[0])].op).relation != ir::Relation::scan;
  }

  bool try_add_to_any(SegmentId id) {
    const std::vector<SegmentId>& makers = segments_.producers[id];
    for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) {
      if (chain_of_[*maker] != nobody && try_add(id, chain_of_[*maker])) return true;
    }
    return false;
  }

  /// Adds the segment to the chain where both may be one kernel, which gains. False: they may not.
  bool try_add(SegmentId id, std::size_t number) {
    Chain& chain = chains_[number];
    const Segment& added = cut_.segments[id];
    if (chain.whole.group != added.group || chain.segments.size() == most_phases) return false;
    const auto mine = static_cast<NodeId>(id), theirs = static_cast<NodeId>(chain.segments.front());
    if (!reads_whole_values(id, number) || order_.would_cycle(mine, theirs)) return false;
    Chain grown{chain.segments};
    grown.segments.push_back(id);
    grown.whole = assembled(cut_, grown.segments);
    if (!fits(grown, 0)) return false;
    grown.whole.chosen = chosen_by(chooser_, graph_, grown.whole, target_);
    if (!grown.whole.chosen || !fits(grown, scratch_arrays(grown.whole))) return false;
    if (!always_ && !gains(grown, chain)) return false;
    order_.merge(mine, theirs);
    chain = std::move(grown);
    chain_of_[id] = number;
    return true;
  }

  /// Notes what `grown` takes and gains; it is `chain` and one more segment.
  bool gains(Chain& grown, const Chain& chain) {
    const double before =
        chain.segments.size() == 1 ? seconds(chain.segments.front()) : chain.whole.chosen->seconds;
    // A replayed graph would have one node less, which costs less than a launch.
    const double apart =
        before + seconds(grown.segments.back()) - target_.launch_seconds + target_.node_seconds;
    const double together = grown.whole.chosen->seconds;
    grown.gain = chain.gain + apart - together;
    if (asked(ir::Question::cooperative, grown.whole, grown.gain > chain.gain)) return true;
    refuse(grown.whole, together, apart);
    return false;
  }

  bool asked(ir::Question question, const Segment& whole, bool by_cost) const {
    return decided(rules_.decide, question, graph_, whole.root, by_cost, [&] { return whole.nodes; });
  }

  /// Another view of a value that the kernel writes would be a second pointer to it.
  bool reads_whole_values(SegmentId id, std::size_t number) const {
    return std::all_of(segments_.reads[id].begin(), segments_.reads[id].end(), [&](const Read& read) {
      return chain_of_[read.maker] != number || (read.whole && !cut_.views.of.contains(read.input));
    });
  }

  std::size_t scratch_arrays(const Segment& segment) const {
    std::size_t arrays = 0;
    for (std::size_t i = 0; i < segment.phases.size(); ++i) {
      const Choices& choices = segment.chosen->choices.phases[i];
      arrays += scratch_of(graph_, staged(graph_, segment.phases[i], choices), choices).size();
    }
    return arrays;
  }

  /// `scratch`: number of arrays, which the choices decide.
  bool fits(const Chain& chain, std::size_t scratch) const {
    std::vector<SymbolId> symbols;
    for (const SegmentId id : chain.segments) symbols = merged(symbols, segments_.symbols[id]);
    const std::size_t arguments =
        chain.whole.inputs.size() + chain.whole.results.size() + symbols.size() + scratch + 1;
    return chain.whole.inputs.size() <= rules_.max_inputs &&
           chain.whole.nodes.size() <= most_cooperative_nodes &&
           bytes_an_argument * arguments <= rules_.argument_bytes;
  }

  /// The seconds of a kernel of its own. Choices take a search, so only candidates are asked for them.
  double seconds(SegmentId id) {
    Segment& segment = cut_.segments[id];
    if (!segment.chosen) segment.chosen = chosen_by(chooser_, graph_, segment, target_);
    return segment.chosen.value().seconds;
  }

  void refuse(const Segment& whole, double together, double apart) {
    std::vector<NodeId> roots;
    for (const Phase& phase : whole.phases) roots.push_back(phase.root);
    refusals_.push_back(no_gain(whole.group, std::move(roots), together, apart));
  }

  void rebuild() {
    std::vector<Assembly> assemblies;
    for (Chain& chain : chains_) {
      if (chain.segments.size() > 1)
        assemblies.push_back({std::move(chain.segments), std::move(chain.whole)});
    }
    replace_segments(segments_, std::move(assemblies), cut_);
  }

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const bool always_;
  const Target& target_;
  Partition& cut_;
  const SegmentGraph segments_;
  const std::vector<bool> fixed_;
  analysis::MergeGraph order_;  // which segments may become one without a cycle
  std::vector<std::size_t> chain_of_;
  std::vector<Chain> chains_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> fuse_cooperatively(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                                        bool always, const Target& target, Partition& cut) {
  return Joiner(graph, rules, chooser, always, target, cut).run();
}

}  // namespace fuse::schedule
