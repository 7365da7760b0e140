// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/phase_fusion.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>

#include "analysis/merge_graph.hpp"
#include "ir/graph/fixed_values.hpp"
#include "schedule/choosers/chooser.hpp"
#include "schedule/choosers/segment_cost.hpp"
#include "schedule/fusion/assemble.hpp"
#include "schedule/fusion/horizontal_fusion.hpp"
#include "schedule/fusion/segment_graph.hpp"
#include "schedule/regional/costly_rows.hpp"
#include "schedule/regional/halo_tiles.hpp"
#include "schedule/regional/slices.hpp"
#include "schedule/segments/canonical.hpp"
#include "schedule/segments/staged.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

// Bounds on one kernel, so that its text and the registers of its longest phase stay small.
constexpr std::size_t most_phases = 8;
constexpr std::size_t most_nodes_of_phases = 600;
constexpr double most_bytes_of_slice = 256 << 10;
constexpr std::int64_t most_bytes_in_block = 16 << 10;  // of values that phases pass on in shared memory

struct Chain {
  std::vector<SegmentId> segments{};  // in segment order
  Segment whole{};
  double gain = 0;  // seconds gained over kernels of their own
};

class Joiner {
 public:
  Joiner(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser, Segment::Between between,
         bool always, const Target& target, Partition& cut)
      : graph_(graph),
        rules_(rules),
        chooser_(chooser),
        between_(between),
        always_(always),
        target_(target),
        cut_(cut),
        segments_(graph, cut),
        fixed_(ir::fixed_values(graph)),
        order_(segments_.order()),
        depth_(cut.segments.size()),
        chain_of_(cut.segments.size(), nobody),
        form_of_(canonical_forms(graph, cut.storage)) {
    for (SegmentId id = 0; id < cut.segments.size(); ++id) {
      for (const SegmentId maker : segments_.producers[id])
        depth_[id] = std::max(depth_[id], depth_[maker] + 1);
    }
  }

  std::vector<Refusal> run() {
    for (SegmentId id = 0; id < cut_.segments.size(); ++id) {
      if (!may_fuse(cut_.segments[id]) || try_add_to_any(id)) continue;
      chain_of_[id] = chains_.size();
      chains_.push_back({{id}, cut_.segments[id]});
    }
    if (regional()) {
      judge_chains();
      put_costly_rows_first();
    } else {
      drop_unless_all_gain();
    }
    rebuild();
    return std::move(refusals_);
  }

  /// Counts the kernels of each level that may share a launch.
  void count_beside() {
    for (SegmentId id = 0; id < cut_.segments.size(); ++id) {
      const Segment& segment = cut_.segments[id];
      if (segment.kind != Segment::Kind::kernel || fixed_[segment.root] || has_columns(segment.phases[0]))
        continue;
      const double seconds = static_cast<double>(moved_bytes(graph_, segment.phases[0])) / target_.bandwidth;
      if (seconds < (longest_part_in_launches - 1) * target_.launch_seconds) ++beside_[depth_[id]];
    }
  }

 private:
  static constexpr std::size_t nobody = SegmentGraph::nobody;

  bool regional() const { return between_ == Segment::Between::block_barrier; }

  /// Chains of regional kernels grow as long as they can, since what several phases read may pay for all of
  /// them only.
  void judge_chains() {
    std::vector<Chain> grown = std::exchange(chains_, {});
    for (Chain& chain : grown) {
      if (chain.segments.size() > 1) {
        judge(chain.segments);
      } else {
        chains_.push_back(std::move(chain));
      }
    }
  }

  /// Makes one kernel of the segments, or of runs of them that gain. The costs say of which; the questions go
  /// by the order of the segments, which no cost changes.
  void judge(const std::vector<SegmentId>& ids) {
    std::vector<std::vector<SegmentId>> by_cost, runs;
    regional_.clear();
    add_runs_by_cost(ids, by_cost);
    const auto together = [&](SegmentId a, SegmentId b) {
      return std::any_of(by_cost.begin(), by_cost.end(), [&](const std::vector<SegmentId>& run) {
        return std::count(run.begin(), run.end(), a) + std::count(run.begin(), run.end(), b) == 2;
      });
    };
    for (const SegmentId id : ids) {
      const bool gains = !runs.empty() && together(runs.back().front(), id);
      if ((gains || rules_.decide) && !runs.empty()) {
        std::vector<SegmentId> grown = runs.back();
        grown.push_back(id);
        const std::optional<Chain>& whole = regional_kernel(grown);
        if (whole && asked(ir::Question::regional, whole->whole, gains)) {
          runs.back() = std::move(grown);
          continue;
        }
      }
      runs.push_back({id});
    }
    for (const std::vector<SegmentId>& run : runs) {
      if (run.size() > 1) {
        chains_.push_back(made(run));
      } else {
        chains_.push_back({{run.front()}, cut_.segments[run.front()]});
      }
    }
  }

  /// Cuts the segments in two where these take least, and each of the two again, until each run takes less as
  /// one kernel than apart. Segments that stay alone are in no run.
  void add_runs_by_cost(const std::vector<SegmentId>& ids, std::vector<std::vector<SegmentId>>& runs) {
    if (ids.size() == 1) return;
    const double apart = seconds_apart(ids);
    const std::optional<Chain>& whole = regional_kernel(ids);
    if (whole && whole->whole.chosen->seconds < apart) return runs.push_back(ids);
    // That one block with the only slice takes longer than many is no news.
    const bool only_slice = whole && whole->whole.chosen->choices.tile.empty() &&
                            slices_of(graph_, whole->whole.phases)->count.is(1);
    if (whole && !only_slice) refuse(whole->whole, whole->whole.chosen->seconds, apart);
    std::size_t best = 0;
    double least = apart;
    const double between = target_.node_seconds - target_.launch_seconds;
    for (std::size_t first = 1; ids.size() > 2 && first < ids.size(); ++first) {
      const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(first);
      const double sum = least_seconds({ids.begin(), middle}) + least_seconds({middle, ids.end()}) + between;
      if (sum < least) best = first, least = sum;
    }
    if (best == 0) return;
    const auto middle = ids.begin() + static_cast<std::ptrdiff_t>(best);
    add_runs_by_cost({ids.begin(), middle}, runs);
    add_runs_by_cost({middle, ids.end()}, runs);
  }

  /// As kernels of their own. A replayed graph has a node for each, which costs less than a launch; or for
  /// all of a level, whose nodes are there without these.
  double seconds_apart(const std::vector<SegmentId>& ids) {
    double sum = target_.launch_seconds - target_.node_seconds;
    std::map<int, std::size_t> levels;
    for (const SegmentId id : ids) {
      sum += seconds(id) - target_.launch_seconds;
      ++levels[depth_[id]];
    }
    for (const auto& [level, count] : levels) {
      const auto found = beside_.find(level);
      if (found == beside_.end() || found->second <= count) sum += target_.node_seconds;
    }
    return sum;
  }

  /// The least time of segments, as one kernel or apart.
  double least_seconds(const std::vector<SegmentId>& ids) {
    const double apart = seconds_apart(ids);
    if (ids.size() == 1) return apart;
    const std::optional<Chain>& whole = regional_kernel(ids);
    return whole ? std::min(apart, whole->whole.chosen->seconds) : apart;
  }

  /// How the segments may be one kernel.
  struct Regional {
    std::optional<Chain> sliced{}, tiled{};
    bool by_tiles() const {
      return tiled && (!sliced || tiled->whole.chosen->seconds < sliced->whole.chosen->seconds);
    }
    const std::optional<Chain>& best() const { return by_tiles() ? tiled : sliced; }
  };
  /// Of neighbours among the segments that are judged. They are kept, since many cuts have the same ones.
  const Regional& regional_kernels(const std::vector<SegmentId>& ids) {
    const auto [known, added] = regional_.try_emplace({ids.front(), ids.size()});
    if (added) known->second = make_regional_kernels(ids);
    return known->second;
  }
  Regional make_regional_kernels(const std::vector<SegmentId>& ids) {
    Chain chain{ids, assembled(cut_, ids)};
    chain.whole.between = between_;
    Regional kernels{.sliced = {}, .tiled = keep_tiles_in_blocks(chain)};
    if (has_small_slices(chain)) kernels.sliced = keep_slices_in_blocks(chain);
    // If both pass on the same values, the choices of the kernel say which it is.
    if (kernels.sliced && kernels.tiled && kernels.sliced->whole.results == kernels.tiled->whole.results)
      kernels.tiled.reset();
    for (std::optional<Chain>* each : {&kernels.sliced, &kernels.tiled}) {
      if (*each) (*each)->whole.chosen = chosen((*each)->whole);
      if (*each && !(*each)->whole.chosen) each->reset();
    }
    return kernels;
  }

  /// Of slices or of halo tiles, whichever takes less. None where no kernel can run the segments in this way.
  const std::optional<Chain>& regional_kernel(const std::vector<SegmentId>& ids) {
    return regional_kernels(ids).best();
  }

  /// The kernel of segments that can be one.
  Chain made(const std::vector<SegmentId>& ids) {
    const Regional& kernels = regional_kernels(ids);
    if (!kernels.sliced || !kernels.tiled) return kernels.best().value();
    const bool tile = asked(ir::Question::tile, kernels.tiled->whole, kernels.by_tiles());
    return (tile ? kernels.tiled : kernels.sliced).value();
  }

  /// Equal segments are asked for once.
  std::optional<Chosen> chosen(const Segment& whole) {
    CanonicalSegment form = form_of_(whole);
    std::vector<std::pair<CanonicalSegment, std::optional<Chosen>>>& known = chosen_[form.hash];
    for (const auto& [other, choices] : known) {
      if (equal(graph_, form, other)) return choices;
    }
    known.emplace_back(std::move(form), chosen_by(chooser_, graph_, whole, target_));
    return known.back().second;
  }

  /// Of kernels that stay alone. It frees arithmetic, for which the model, whose times are not that exact,
  /// may see them take a little longer.
  void put_costly_rows_first() {
    constexpr double at_most = 1.05;  // relative to the time before
    for (Chain& chain : chains_) {
      if (chain.segments.size() > 1) continue;
      std::optional<Segment> whole = with_costly_rows_first(graph_, chain.whole);
      if (whole) whole->chosen = chosen(*whole);
      if (!whole || !whole->chosen) continue;
      const double alone = seconds(chain.segments.front());
      if (asked(ir::Question::regional, *whole, whole->chosen->seconds <= at_most * alone))
        chain.whole = std::move(*whole);
    }
  }

  void drop_unless_all_gain() {
    double gain = 0;
    for (const Chain& chain : chains_) gain += chain.gain;
    // One more step zeroes the counters of all kernels.
    const bool pays = always_ || gain > target_.launch_seconds;
    for (Chain& chain : chains_) {
      if (chain.segments.size() == 1 || always_ || asked(ir::Question::wait, chain.whole, pays)) continue;
      const double together = chain.whole.chosen->seconds;
      refuse(chain.whole, together, together + chain.gain);
      refusals_.back().numbers.emplace_back("zeroed counters us",
                                            fmt::format("{:.1f}", target_.launch_seconds * 1e6));
      chain.segments.clear();
    }
  }

  /// What runs once for the parameters stays a kernel of its own; scans and what was cut for its size run
  /// with their own blocks, as does what has phases already.
  bool may_fuse(const Segment& segment) const {
    if (segment.kind != Segment::Kind::kernel || segment.group == no_group || segment.in_place() ||
        segment.phases.size() > 1)
      return false;
    if (fixed_[segment.root] || segment.end == "size") return false;
    if (regional()) return !has_columns(segment.phases[0]);
    return info(graph_[dominant(segment.phases[0])].op).relation != ir::Relation::scan;
  }

  bool try_add_to_any(SegmentId id) {
    const std::vector<SegmentId>& makers = segments_.producers[id];
    for (auto maker = makers.rbegin(); maker != makers.rend(); ++maker) {
      if (chain_of_[*maker] != nobody && try_add(id, chain_of_[*maker])) return true;
    }
    return false;
  }

  /// Adds the segment to the chain where both may be one kernel; and, of a cooperative one, where that gains.
  /// False: they may not.
  bool try_add(SegmentId id, std::size_t number) {
    Chain& chain = chains_[number];
    const Segment& added = cut_.segments[id];
    if (chain.segments.size() == most_phases) return false;
    if (regional() ? starts_later(id, number) : chain.whole.group != added.group) return false;
    const auto mine = static_cast<NodeId>(id), theirs = static_cast<NodeId>(chain.segments.front());
    if (!reads_whole_values(id, number) || order_.would_cycle(mine, theirs)) return false;
    Chain grown{chain.segments};
    grown.segments.push_back(id);
    grown.whole = assembled(cut_, grown.segments);
    if (!fits(grown, 0) || (regional() && !has_small_slices(grown) && !has_tiles(grown))) return false;
    if (regional() && reads_donor(grown)) return false;
    if (!regional()) {
      grown.whole.chosen = chosen_by(chooser_, graph_, grown.whole, target_);
      if (!grown.whole.chosen || !fits(grown, scratch_arrays(grown.whole))) return false;
      if (!always_ && !gains(grown, chain)) return false;
    }
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

  /// The chain of which only the last phase's results leave the block, where halo tiles go through it.
  std::optional<Chain> keep_tiles_in_blocks(const Chain& chain) const {
    std::vector<NodeId> results = results_of_tiles(chain);
    if (!halo_tiles(graph_, chain.whole.phases, results)) return std::nullopt;
    Chain tiled = chain;
    tiled.whole.results = std::move(results);
    return tiled;
  }

  bool has_tiles(const Chain& chain) const {
    return halo_tiles(graph_, chain.whole.phases, results_of_tiles(chain)).has_value();
  }

  /// What leaves the block if it can.
  std::vector<NodeId> results_of_tiles(const Chain& chain) const {
    std::vector<NodeId> results = chain.whole.results;
    const std::vector<NodeId>& last = chain.whole.phases.back().results;
    std::erase_if(results, [&](NodeId result) {
      return !std::binary_search(last.begin(), last.end(), result) && !is_read_outside(result, chain);
    });
    return results;
  }

  /// The chain of which what only it reads stays in the shared memory of blocks, where a slice of it is small
  /// enough. None where no slices go through the phases.
  std::optional<Chain> keep_slices_in_blocks(Chain chain) const {
    const std::optional<Slices> slices = slices_of(graph_, chain.whole.phases);
    if (!slices) return std::nullopt;
    const std::int64_t limit = std::min<std::int64_t>(most_bytes_in_block, target_.shared_per_block / 2);
    std::int64_t bytes = 0;
    const std::vector<NodeId> results = chain.whole.results;
    for (const NodeId result : results) {
      if (result == chain.whole.root || is_read_outside(result, chain)) continue;
      const ir::Type& type = graph_[result].type;
      const std::optional<Dim> elements = elements_in_slice(type.dims, slices->count);
      const std::int64_t most = limit / static_cast<std::int64_t>(size_of(type.dtype));
      if (!elements || elements->max() > most) continue;
      const std::int64_t added = elements->max() * static_cast<std::int64_t>(size_of(type.dtype));
      if (bytes + added > limit) continue;
      bytes += added;
      std::erase(chain.whole.results, result);
    }
    return chain;
  }

  /// Whether slices go through the phases, and none is so large that its block would run alone for long.
  bool has_small_slices(const Chain& chain) const {
    const std::optional<Slices> slices = slices_of(graph_, chain.whole.phases);
    if (!slices) return false;
    double bytes = 0;
    for (const Phase& phase : chain.whole.phases) bytes += static_cast<double>(moved_bytes(graph_, phase));
    return bytes <=
           most_bytes_of_slice * static_cast<double>(std::max<std::int64_t>(1, slices->count.hint()));
  }

  /// Whether the kernel would read what an output of it is to be written over: the output would be copied
  /// there, and kernels of their own may write it in place.
  bool reads_donor(const Chain& chain) const {
    const auto is_donor_of = [&](const ir::Output& output) {
      const NodeId made = cut_.storage[output.node];
      return output.donated() &&
             std::binary_search(chain.whole.results.begin(), chain.whole.results.end(), made) &&
             std::any_of(chain.whole.inputs.begin(), chain.whole.inputs.end(),
                         [&](NodeId input) { return memory_of(cut_, input) == output.donor; });
    };
    return std::any_of(graph_.outputs.begin(), graph_.outputs.end(), is_donor_of);
  }

  bool is_read_outside(NodeId value, const Chain& chain) const {
    const SegmentId maker = segments_.maker[value];
    if (segments_.returned[maker] || cut_.views.of.contains(value)) return true;
    return std::any_of(
        segments_.read_by[maker].begin(), segments_.read_by[maker].end(), [&](SegmentId reader) {
          if (std::find(chain.segments.begin(), chain.segments.end(), reader) != chain.segments.end())
            return false;
          return std::any_of(
              segments_.reads[reader].begin(), segments_.reads[reader].end(),
              [&](const Read& read) { return read.maker == maker && (!read.whole || read.input == value); });
        });
  }

  /// Whether the segment waits for what the chain's first does not wait for: then those that read the chain
  /// would wait for it, too.
  bool starts_later(SegmentId id, std::size_t number) const {
    const int start = depth_[chains_[number].segments.front()];
    const std::vector<SegmentId>& makers = segments_.producers[id];
    return std::any_of(makers.begin(), makers.end(),
                       [&](SegmentId maker) { return chain_of_[maker] != number && depth_[maker] >= start; });
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
           chain.whole.nodes.size() <= most_nodes_of_phases &&
           bytes_an_argument * arguments <= rules_.argument_bytes;
  }

  /// The seconds of a kernel of its own. Choices take a search, so only candidates are asked for them. A
  /// segment that cannot be a kernel counts as one that never ends.
  double seconds(SegmentId id) {
    Segment& segment = cut_.segments[id];
    if (!segment.chosen) segment.chosen = chosen(segment);
    return segment.chosen ? segment.chosen->seconds : std::numeric_limits<double>::infinity();
  }

  void refuse(const Segment& whole, double together, double apart) {
    std::vector<NodeId> roots;
    for (const Phase& phase : whole.phases) roots.push_back(phase.root);
    refusals_.push_back(no_gain(whole.group, std::move(roots), together, apart));
  }

  void rebuild() {
    std::vector<Assembly> assemblies;
    for (Chain& chain : chains_) {
      if (chain.segments.empty() || chain.whole.phases.size() < 2) continue;
      for (const Phase& phase : chain.whole.phases) {
        for (const NodeId result : phase.results)
          cut_.stored[result] =
              std::binary_search(chain.whole.results.begin(), chain.whole.results.end(), result);
      }
      assemblies.push_back({std::move(chain.segments), std::move(chain.whole)});
    }
    if (!assemblies.empty()) replace_segments(segments_, std::move(assemblies), cut_);
  }

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const Segment::Between between_;
  const bool always_;
  const Target& target_;
  Partition& cut_;
  const SegmentGraph segments_;
  const std::vector<bool> fixed_;
  analysis::MergeGraph order_;         // which segments may become one without a cycle
  std::vector<int> depth_;             // steps on the longest chain to each segment
  std::map<int, std::size_t> beside_;  // by level: kernels that may share a launch
  std::vector<std::size_t> chain_of_;
  std::vector<Chain> chains_;
  std::map<std::pair<SegmentId, std::size_t>, Regional> regional_;  // by a run's first segment and length
  std::vector<Refusal> refusals_;
  std::function<CanonicalSegment(const Segment&)> form_of_;
  std::unordered_map<std::uint64_t, std::vector<std::pair<CanonicalSegment, std::optional<Chosen>>>> chosen_;
};

}  // namespace

std::vector<Refusal> fuse_regionally(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                                     bool horizontal, const Target& target, Partition& cut) {
  Joiner joiner(graph, rules, chooser, Segment::Between::block_barrier, false, target, cut);
  if (horizontal) joiner.count_beside();
  return joiner.run();
}

std::vector<Refusal> fuse_cooperatively(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                                        bool always, const Target& target, Partition& cut) {
  return Joiner(graph, rules, chooser, Segment::Between::grid_barrier, always, target, cut).run();
}

}  // namespace fuse::schedule
