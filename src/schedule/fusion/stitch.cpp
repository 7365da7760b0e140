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
#include "schedule/choosers/piece_cost.hpp"
#include "schedule/fusion/piece_graph.hpp"
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
    16;  // clusters that a piece is tried with though it reads nothing of them
constexpr std::ptrdiff_t most_reductions = 5;  // ptxas spills from 7 of mixed types on
constexpr std::size_t most_nodes = 600;        // counted once for each stage that may compute them again

struct Cluster {
  std::vector<Member> members{};  // in piece order
  Frame frame{};
  std::size_t nodes = 0;
  std::vector<NodeId> inputs{};     // sorted; values of members among them
  std::vector<SymbolId> symbols{};  // sorted
  Piece whole{};                    // of several members that stay together
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
        pieces_(graph, cut),
        fixed_(ir::fixed_values(graph)),
        cluster_of_(cut.pieces.size(), nobody),
        order_(pieces_.order()) {}

  std::vector<Refusal> run() {
    std::unordered_map<GroupId, std::vector<PieceId>> of_group;
    std::vector<GroupId> order;
    for (PieceId id = 0; id < cut_.pieces.size(); ++id) {
      const GroupId group = cut_.pieces[id].group;
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
  const Piece& piece(PieceId id) const { return cut_.pieces[id]; }

  static NodeId number_of(PieceId id) { return static_cast<NodeId>(id); }

  /// What runs once for the parameters stays a kernel of its own, and so do what writes over its input and
  /// what was cut off for its size.
  bool is_candidate(const Piece& piece) const {
    if (piece.kind != Piece::Kind::kernel || piece.in_place() || fixed_[piece.root] || piece.end == "size")
      return false;
    return info(graph_[piece.root].op).relation != Relation::scan;
  }

  void grow(const std::vector<PieceId>& pieces) {
    const std::size_t first = clusters_.size();
    for (const PieceId id : pieces) {
      if (is_candidate(piece(id)) && joins_any(id, first)) continue;
      const Frame frame = frame_of(graph_, piece(id).root);
      const auto form = frame.reduces ? Stage::Form::reduce : Stage::Form::element;
      cluster_of_[id] = clusters_.size();
      clusters_.push_back({{{id, piece(id).root, form, 0}},
                           frame,
                           piece(id).nodes.size(),
                           piece(id).inputs,
                           pieces_.symbols[id]});
    }
  }

  /// What makes its inputs is asked first, the latest of it before the others.
  bool joins_any(PieceId id, std::size_t first) {
    std::vector<std::size_t> wanted;
    for (const PieceId producer : pieces_.producers[id]) {
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

  bool joins(PieceId id, std::size_t number) {
    Cluster& cluster = clusters_[number];
    const Piece& added = piece(id);
    if (!is_candidate(piece(cluster.members.front().piece))) return false;
    if (cluster.members.size() == most_stages) return false;
    if (cluster.nodes + added.nodes.size() > most_nodes) return false;
    Cluster grown = cluster;
    grown.nodes += added.nodes.size();
    grown.inputs = merged(grown.inputs, added.inputs);
    grown.symbols = merged(grown.symbols, pieces_.symbols[id]);
    if (!reframe(grown, id)) return false;
    const std::optional<Member> member =
        place(graph_, grown.frame, id, added, pieces_.reads[id], grown.members);
    if (!member) return false;
    grown.members.push_back(*member);
    if (!fits(grown)) return false;
    const NodeId mine = number_of(id), theirs = number_of(cluster.members.front().piece);
    if (order_.would_cycle(mine, theirs)) return false;
    order_.merge(mine, theirs);
    cluster = std::move(grown);
    cluster_of_[id] = number;
    return true;
  }

  /// Loops without a reduction become those of one that is added; columns become those of rows.
  bool reframe(Cluster& cluster, PieceId added) const {
    const Frame frame = frame_of(graph_, piece(added).root);
    const bool rows_of_columns =
        frame.inner && !cluster.frame.inner && frame.is_reduced != cluster.frame.is_reduced;
    if (!frame.reduces || (cluster.frame.reduces && !rows_of_columns)) return true;
    std::vector<PieceId> pieces;
    for (const Member& member : cluster.members) pieces.push_back(member.piece);
    return set_members(cluster, frame, pieces);
  }

  /// False where one of the pieces, in their order, cannot be a stage.
  bool set_members(Cluster& cluster, const Frame& frame, const std::vector<PieceId>& pieces) const {
    cluster.frame = frame;
    cluster.members.clear();
    for (const PieceId id : pieces) {
      const std::optional<Member> member =
          place(graph_, frame, id, piece(id), pieces_.reads[id], cluster.members);
      if (!member) return false;
      cluster.members.push_back(*member);
    }
    return true;
  }

  bool fits(const Cluster& cluster) const {
    std::size_t inputs = cluster.inputs.size();
    for (const Member& member : cluster.members) {
      inputs -= std::binary_search(cluster.inputs.begin(), cluster.inputs.end(), piece(member.piece).root);
    }
    const std::size_t arguments = inputs + cluster.members.size() + cluster.symbols.size();
    if (inputs > rules_.max_inputs || bytes_an_argument * arguments > rules_.argument_bytes) return false;
    if (count(cluster, Stage::Form::reduce) > most_reductions) return false;
    std::vector<NodeId> columns;
    for (const Member& member : cluster.members) {
      if (member.form == Stage::Form::column_reduce) columns.push_back(member.root);
    }
    return columns.empty() || can_keep_columns(graph_, columns, target_);
  }

  static std::ptrdiff_t count(const Cluster& cluster, Stage::Form form) {
    return std::count_if(cluster.members.begin(), cluster.members.end(),
                         [&](const Member& member) { return member.form == form; });
  }

  bool used_outside(PieceId id, const Cluster& cluster) const {
    if (pieces_.returned[id] || cut_.views.of.contains(piece(id).root)) return true;
    return std::any_of(pieces_.read_by[id].begin(), pieces_.read_by[id].end(), [&](PieceId reader) {
      return std::none_of(cluster.members.begin(), cluster.members.end(),
                          [&](const Member& member) { return member.piece == reader; });
    });
  }

  Piece assembled(const Cluster& cluster) const {
    Segment whole;
    std::vector<NodeId> roots;
    for (const Member& member : cluster.members) {
      const Piece& part = piece(member.piece);
      whole.nodes = merged(whole.nodes, part.nodes);
      whole.inputs = merged(whole.inputs, part.inputs);
      roots.push_back(part.root);
      const bool stored = used_outside(member.piece, cluster);
      if (stored) whole.results.push_back(part.root);
      // What nobody outside reads is computed again where it is needed, unless a reduction makes it.
      const bool reduces = member.form == Stage::Form::reduce || member.form == Stage::Form::column_reduce;
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
    const Piece& last = piece(pieces_.maker[whole.root]);
    return piece_of(std::move(whole), last.group, last.end);
  }

  /// Its choices are made when they are asked for, once. No kernel of its own is a kernel that never ends.
  double seconds(Piece& piece) const {
    if (!piece.chosen) piece.chosen = chosen_by(chooser_, graph_, piece, target_);
    return piece.chosen ? piece.chosen->seconds : std::numeric_limits<double>::infinity();
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
        Piece alone = assembled(half);
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
    for (const Member& member : cluster.members) alone += seconds(cut_.pieces[member.piece]);
    if (stays_together(cluster.whole, together, alone)) return;
    refuse(cluster, together, alone);
    keep_apart(cluster);
  }

  /// What no chooser has choices for is nothing to ask about.
  bool stays_together(const Piece& whole, double together, double apart) const {
    const bool gains = together <= apart;
    if (!whole.chosen) return gains;
    return decided(rules_.decide, ir::Question::stitch, graph_, whole.root, gains,
                   [&] { return whole.nodes; });
  }

  /// Rows, and what is made of columns; none where there are no columns.
  std::optional<std::array<Cluster, 2>> split(const Cluster& cluster) const {
    std::array<std::vector<PieceId>, 2> pieces;
    NodeId column = 0;
    for (const Member& member : cluster.members) {
      const bool reduces = member.form == Stage::Form::column_reduce;
      pieces[reduces || member.form == Stage::Form::column].push_back(member.piece);
      if (reduces) column = member.root;
    }
    std::array<Cluster, 2> halves;
    if (pieces[1].empty() || !set_members(halves[0], cluster.frame, pieces[0]) ||
        !set_members(halves[1], frame_of(graph_, column), pieces[1])) {
      return std::nullopt;
    }
    return halves;
  }

  void refuse(const Cluster& cluster, double together, double apart) {
    std::vector<NodeId> roots;
    for (const Member& member : cluster.members) roots.push_back(member.root);
    const GroupId group = piece(cluster.members.front().piece).group;
    refusals_.push_back(no_gain(group, std::move(roots), together, apart));
  }

  static void keep_apart(Cluster& cluster) { cluster.members.clear(); }

  /// Clusters become pieces, in an order that respects dependencies and else keeps the one there was.
  void rebuild() {
    analysis::ClusterGraph kept(pieces_.order());
    for (Cluster& cluster : clusters_) {
      for (const Member& member : cluster.members) {
        const std::vector<NodeId>& results = cluster.whole.results;
        cut_.stored[member.root] = std::find(results.begin(), results.end(), member.root) != results.end();
        kept.merge(number_of(member.piece), number_of(cluster.members.front().piece));
      }
    }
    std::unordered_map<NodeId, Cluster*> whole;
    for (Cluster& cluster : clusters_) {
      if (!cluster.members.empty()) whole[kept.find(number_of(cluster.members.front().piece))] = &cluster;
    }
    std::vector<Piece> pieces;
    for (const NodeId name : kept.topological()) {
      const auto found = whole.find(name);
      pieces.push_back(std::move(found == whole.end() ? cut_.pieces[name] : found->second->whole));
    }
    cut_.pieces = std::move(pieces);
  }

  static constexpr std::size_t nobody = PieceGraph::nobody;

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Chooser& chooser_;
  const Target& target_;
  Partition& cut_;
  const PieceGraph pieces_;
  const std::vector<bool> fixed_;
  std::vector<std::size_t> cluster_of_;
  analysis::ClusterGraph order_;  // of pieces: which of them may become one without a cycle
  std::vector<Cluster> clusters_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> stitch(const ir::Graph& graph, const CutRules& rules, const Chooser& chooser,
                            const Target& target, Partition& cut) {
  return Stitcher(graph, rules, chooser, target, cut).run();
}

}  // namespace fuse::schedule
