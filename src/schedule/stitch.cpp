// SPDX-License-Identifier: Apache-2.0
#include "schedule/stitch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <optional>
#include <queue>
#include <unordered_map>

#include "analysis/cluster_graph.hpp"
#include "ir/fixed_values.hpp"
#include "schedule/arguments.hpp"
#include "schedule/schedule.hpp"
#include "schedule/shape.hpp"
#include "schedule/step_cost.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;
using PieceId = std::size_t;

// Bounds on one kernel, so that its text and its registers stay small whatever the graph.
constexpr std::size_t most_stages = 24;
constexpr std::size_t most_others =
    16;  // clusters that a piece is tried with though it reads nothing of them
constexpr std::ptrdiff_t most_reductions = 5;  // ptxas spills from 7 of mixed types on
constexpr std::size_t most_nodes = 600;        // counted once for each stage that may compute them again

/// The loops of a kernel: extents, and which of them the dominant reduces.
struct Frame {
  std::vector<Dim> dims{};
  std::vector<bool> is_reduced{};
  bool reduces = false;

  std::vector<std::size_t> long_kept() const {  // dims of a row's value that are longer than 1
    std::vector<std::size_t> result;
    for (std::size_t i = 0; i < dims.size(); ++i) {
      if (!is_reduced[i] && !dims[i].is(1)) result.push_back(i);
    }
    return result;
  }
};

std::vector<std::size_t> long_dims(const std::vector<Dim>& dims) {
  std::vector<std::size_t> result;
  for (std::size_t i = 0; i < dims.size(); ++i) {
    if (!dims[i].is(1)) result.push_back(i);
  }
  return result;
}

struct Member {
  PieceId piece = 0;
  Stage::Form form = Stage::Form::element;
  int pass = 0;
};

struct Cluster {
  std::vector<Member> members{};  // in piece order
  Frame frame{};
  std::size_t nodes = 0;
  std::vector<NodeId> inputs{};     // sorted; values of members among them
  std::vector<SymbolId> symbols{};  // sorted
};

/// A value that a piece reads, and the piece that makes it or a part of its memory.
struct Read {
  NodeId input = 0;
  PieceId maker = 0;
  bool whole = true;  // the piece makes the value itself
};

class Stitcher {
 public:
  Stitcher(const ir::Graph& graph, const CutRules& rules, const Target& target, Pieces& cut)
      : graph_(graph),
        rules_(rules),
        target_(target),
        cut_(cut),
        mentions_(graph),
        fixed_(ir::fixed_values(graph)),
        maker_(graph.nodes.size(), nobody),
        cluster_of_(cut.pieces.size(), nobody),
        order_(find_producers()) {}

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
    for (Cluster& cluster : clusters_) {
      if (cluster.members.size() > 1) judge(cluster);
    }
    rebuild();
    return std::move(refusals_);
  }

 private:
  const Piece& piece(PieceId id) const { return cut_.pieces[id]; }

  static NodeId number_of(PieceId id) { return static_cast<NodeId>(id); }

  /// Of each piece: those that make what it reads.
  std::vector<std::vector<NodeId>> find_producers() {
    for (PieceId id = 0; id < cut_.pieces.size(); ++id) maker_[piece(id).root] = id;
    read_by_.resize(cut_.pieces.size());
    for (PieceId id = 0; id < cut_.pieces.size(); ++id) {
      std::vector<Read> reads;
      std::vector<PieceId> makers;
      for (const NodeId input : piece(id).inputs) {
        for (const NodeId value : values_behind(input)) {
          reads.push_back({input, maker_[value], value == input});
          makers.push_back(maker_[value]);
        }
      }
      std::sort(makers.begin(), makers.end());
      makers.erase(std::unique(makers.begin(), makers.end()), makers.end());
      for (const PieceId maker : makers) read_by_[maker].push_back(id);
      reads_.push_back(std::move(reads));
      producers_.push_back(std::move(makers));
      std::vector<SymbolId> symbols;
      for (const NodeId node : piece(id).nodes) symbols = merged(symbols, mentions_.of(node));
      symbols_.push_back(std::move(symbols));
    }
    returned_.resize(cut_.pieces.size());
    for (const ir::Output& output : graph_.outputs) {
      for (const NodeId value : values_behind(output.node)) returned_[maker_[value]] = true;
    }
    std::vector<std::vector<NodeId>> below;
    for (const std::vector<PieceId>& makers : producers_) below.emplace_back(makers.begin(), makers.end());
    return below;
  }

  /// The values that pieces make of what is read.
  std::vector<NodeId> values_behind(NodeId read) const {
    std::vector<NodeId> values = written_values(cut_.views, cut_.storage[read]);
    values.push_back(read);
    std::erase_if(values, [&](NodeId value) { return maker_[value] == nobody; });
    return values;
  }

  /// What runs once for the parameters stays a kernel of its own, and so do what writes over its input and
  /// what was cut off for its size.
  bool is_candidate(const Piece& piece) const {
    if (piece.kind != Piece::Kind::kernel || piece.in_place || fixed_[piece.root] || piece.end == "size")
      return false;
    return info(graph_[piece.root].op).relation != Relation::scan;
  }

  bool reduces(NodeId root) const { return info(graph_[root].op).relation == Relation::reduce; }

  Frame frame_of(NodeId root) const {
    if (!reduces(root)) {
      const std::vector<Dim>& dims = graph_[root].type.dims;
      return {.dims = dims, .is_reduced = std::vector<bool>(dims.size())};
    }
    return {.dims = graph_[graph_[root].operands[0]].type.dims,
            .is_reduced = loop_shape(graph_, graph_[root]).is_reduced,
            .reduces = true};
  }

  void grow(const std::vector<PieceId>& pieces) {
    const std::size_t first = clusters_.size();
    for (const PieceId id : pieces) {
      if (is_candidate(piece(id)) && joins_any(id, first)) continue;
      const Frame frame = frame_of(piece(id).root);
      const auto form = frame.reduces ? Stage::Form::reduce : Stage::Form::element;
      cluster_of_[id] = clusters_.size();
      clusters_.push_back({{{id, form, 0}}, frame, piece(id).nodes.size(), piece(id).inputs, symbols_[id]});
    }
  }

  /// What makes its inputs is asked first, the latest of it before the others.
  bool joins_any(PieceId id, std::size_t first) {
    std::vector<std::size_t> wanted;
    for (const PieceId producer : producers_[id]) {
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
    if (!is_candidate(piece(cluster.members.front().piece))) return false;
    if (cluster.members.size() == most_stages) return false;
    if (cluster.nodes + piece(id).nodes.size() > most_nodes) return false;
    const auto reductions =
        std::count_if(cluster.members.begin(), cluster.members.end(),
                      [](const Member& member) { return member.form == Stage::Form::reduce; });
    if (reduces(piece(id).root) && reductions == most_reductions) return false;
    const bool reframed = !cluster.frame.reduces && reduces(piece(id).root);
    const Frame frame = reframed ? frame_of(piece(id).root) : cluster.frame;
    if (!form_in(frame, piece(id).root)) return false;
    Cluster grown = cluster;
    grown.frame = frame;
    grown.members.push_back({.piece = id});
    grown.nodes += piece(id).nodes.size();
    grown.inputs = merged(grown.inputs, piece(id).inputs);
    grown.symbols = merged(grown.symbols, symbols_[id]);
    if (!fits(grown)) return false;
    for (std::size_t i = reframed ? 0 : grown.members.size() - 1; i < grown.members.size(); ++i) {
      if (!place(grown, i)) return false;
    }
    const NodeId mine = number_of(id), theirs = number_of(cluster.members.front().piece);
    if (order_.would_cycle(mine, theirs)) return false;
    order_.merge(mine, theirs);
    cluster = std::move(grown);
    cluster_of_[id] = number;
    return true;
  }

  /// Finds the form and the pass of a member among those before it; false where it cannot be a stage there.
  bool place(Cluster& cluster, std::size_t index) const {
    Member& member = cluster.members[index];
    const NodeId root = piece(member.piece).root;
    const std::optional<Stage::Form> form = form_in(cluster.frame, root);
    if (!form) return false;
    member.form = *form;
    member.pass = 0;
    for (const Read& read : reads_[member.piece]) {
      const auto made = std::find_if(cluster.members.begin(), cluster.members.end(),
                                     [&](const Member& other) { return other.piece == read.maker; });
      if (made == cluster.members.end()) continue;
      if (!read.whole || !holds(cluster.frame, *made, member)) return false;
      member.pass = std::max(member.pass, made->pass + (made->form == Stage::Form::reduce));
    }
    return true;
  }

  std::optional<Stage::Form> form_in(const Frame& frame, NodeId root) const {
    if (reduces(root)) {
      const Frame own = frame_of(root);
      if (own.dims != frame.dims || own.is_reduced != frame.is_reduced) return std::nullopt;
      return Stage::Form::reduce;
    }
    const std::vector<Dim>& dims = graph_[root].type.dims;
    if (dims == frame.dims) return Stage::Form::element;
    if (!frame.reduces) return std::nullopt;
    const std::vector<std::size_t> mine = long_dims(dims), kept = frame.long_kept();
    const auto same = [&](std::size_t a, std::size_t b) { return dims[a] == frame.dims[b]; };
    if (!std::equal(mine.begin(), mine.end(), kept.begin(), kept.end(), same)) return std::nullopt;
    return Stage::Form::row;
  }

  /// Whether a thread that computes an element or a row of `reader` is one that holds what it reads of
  /// `made`.
  bool holds(const Frame& frame, const Member& made, const Member& reader) const {
    const NodeId value = piece(made.piece).root, root = piece(reader.piece).root;
    const bool by_row = made.form != Stage::Form::element;
    if (!by_row && reader.form == Stage::Form::row) return false;
    const NodeId target = reader.form == Stage::Form::reduce ? graph_[root].operands[0] : root;
    const std::optional<Places> places = places_in(piece(reader.piece), value, target);
    if (!places) return false;
    const std::vector<std::size_t> at = !by_row ? long_dims(frame.dims)
                                        : reader.form == Stage::Form::row
                                            ? long_dims(graph_[target].type.dims)
                                            : frame.long_kept();
    return *places == at;
  }

  /// The dims of a result along which the long dims of a value run.
  using Places = std::vector<std::size_t>;

  /// Of the target, where every op between keeps coordinates or repeats them, and all paths agree.
  std::optional<Places> places_in(const Piece& reader, NodeId value, NodeId target) const {
    std::map<NodeId, Places> places = {{value, long_dims(graph_[value].type.dims)}};
    for (const NodeId id : reader.nodes) {  // operands first
      if (id == reader.root && id != target) continue;
      std::optional<Places> mine;
      for (const NodeId operand : graph_[id].operands) {
        const auto found = places.find(operand);
        if (found == places.end()) continue;
        const std::optional<Places> through = places_through(graph_[id], found->second);
        if (!through || (mine && *mine != *through)) return std::nullopt;
        mine = through;
      }
      if (mine) places[id] = std::move(*mine);
    }
    const auto found = places.find(target);
    return found == places.end() ? std::nullopt : std::optional(found->second);
  }

  std::optional<Places> places_through(const ir::Node& node, const Places& operand) const {
    switch (info(node.op).relation) {
      case Relation::identity:
        return operand;
      case Relation::broadcast: {
        Places places;
        for (const std::size_t dim : operand) {
          places.push_back(static_cast<std::size_t>(ir::attr<ir::DimsAttr>(node).dims[dim]));
        }
        return places;
      }
      case Relation::reshape: {
        // Dims of extent 1 come and go; those that repeat the value stay where they are among the long ones.
        const std::vector<Dim>& from = graph_[node.operands[0]].type.dims;
        if (ir::without_ones(from) != ir::without_ones(node.type.dims)) return std::nullopt;
        const std::vector<std::size_t> before = long_dims(from), after = long_dims(node.type.dims);
        Places places;
        for (const std::size_t dim : operand) {
          places.push_back(
              after[static_cast<std::size_t>(std::find(before.begin(), before.end(), dim) - before.begin())]);
        }
        return places;
      }
      default:
        return std::nullopt;
    }
  }

  bool fits(const Cluster& cluster) const {
    std::size_t inputs = cluster.inputs.size();
    for (const Member& member : cluster.members) {
      inputs -= std::binary_search(cluster.inputs.begin(), cluster.inputs.end(), piece(member.piece).root);
    }
    const std::size_t arguments = inputs + cluster.members.size() + cluster.symbols.size();
    return inputs <= rules_.max_inputs && bytes_an_argument * arguments <= rules_.argument_bytes;
  }

  bool used_outside(PieceId id, const Cluster& cluster) const {
    if (returned_[id] || cut_.views.of.contains(piece(id).root)) return true;
    return std::any_of(read_by_[id].begin(), read_by_[id].end(), [&](PieceId reader) {
      return std::none_of(cluster.members.begin(), cluster.members.end(),
                          [&](const Member& member) { return member.piece == reader; });
    });
  }

  Piece assembled(const Cluster& cluster) const {
    Piece whole;
    whole.group = piece(cluster.members.front().piece).group;
    std::vector<NodeId> roots;
    for (const Member& member : cluster.members) {
      const Piece& part = piece(member.piece);
      whole.nodes = merged(whole.nodes, part.nodes);
      whole.inputs = merged(whole.inputs, part.inputs);
      roots.push_back(part.root);
      const bool stored = used_outside(member.piece, cluster);
      if (stored) whole.results.push_back(part.root);
      // What nobody outside reads is computed again where it is needed, unless a reduction makes it.
      if (stored || member.form == Stage::Form::reduce) {
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
    whole.end = piece(maker_[whole.root]).end;
    return whole;
  }

  std::int64_t bytes(const std::vector<NodeId>& values) const {
    std::int64_t sum = 0;
    for (const NodeId id : values) {
      const ir::Type& type = graph_[id].type;
      sum += product(type.dims).hint() * static_cast<std::int64_t>(size_of(type.dtype));
    }
    return sum;
  }

  double seconds(const Piece& piece) const {
    const std::int64_t all = bytes(piece.inputs) + bytes(results_of(piece));
    double sum = 0;
    for (const KernelSchedule& launch : launches(graph_, piece, default_choices(graph_, piece, target_))) {
      const Residency residency{.blocks = launch.grid.hint(), .threads = launch.block_threads};
      const bool combines = launch.role == KernelSchedule::Role::combine;  // the parts that were left for it
      const std::int64_t moved = combines ? 8 * launch.results.hint() * launch.reduced.hint() : all;
      sum += kernel_cost(moved, residency, target_).seconds;
    }
    return sum;
  }

  /// One kernel has one way to lay its loops over the device: stages that would fill it by themselves may
  /// lose more than launches and traffic gain.
  void judge(Cluster& cluster) {
    double alone = 0;
    for (const Member& member : cluster.members) alone += seconds(piece(member.piece));
    const double together = seconds(assembled(cluster));
    if (together <= alone) return;
    Refusal refusal{.group = piece(cluster.members.front().piece).group, .reason = Reason::no_gain};
    for (const Member& member : cluster.members) refusal.at.push_back(piece(member.piece).root);
    refusal.numbers = {{"one kernel us", fmt::format("{:.1f}", together * 1e6)},
                       {"separate us", fmt::format("{:.1f}", alone * 1e6)}};
    refusals_.push_back(std::move(refusal));
    cluster.members.clear();
  }

  /// Clusters become pieces, in an order that respects dependencies and else keeps the one there was.
  void rebuild() {
    std::vector<Piece> pieces;
    std::vector<std::size_t> unit(cut_.pieces.size(), nobody);  // of each piece: the new one
    std::vector<PieceId> last;                                  // of each new piece: its last old one
    for (const Cluster& cluster : clusters_) {
      if (cluster.members.size() < 2) continue;
      for (const Member& member : cluster.members) unit[member.piece] = pieces.size();
      last.push_back(cluster.members.back().piece);
      pieces.push_back(assembled(cluster));
      for (const Member& member : cluster.members) {
        const NodeId root = piece(member.piece).root;
        const std::vector<NodeId>& results = pieces.back().results;
        cut_.stored[root] = std::find(results.begin(), results.end(), root) != results.end();
      }
    }
    if (pieces.empty()) return;
    for (PieceId id = 0; id < cut_.pieces.size(); ++id) {
      if (unit[id] != nobody) continue;
      unit[id] = pieces.size();
      last.push_back(id);
      pieces.push_back(std::move(cut_.pieces[id]));
    }
    std::vector<std::vector<std::size_t>> readers(pieces.size());
    std::vector<std::size_t> waits(pieces.size());
    for (PieceId id = 0; id < producers_.size(); ++id) {
      for (const PieceId producer : producers_[id]) {
        if (unit[producer] == unit[id]) continue;
        readers[unit[producer]].push_back(unit[id]);
        ++waits[unit[id]];
      }
    }
    using Entry = std::pair<PieceId, std::size_t>;
    std::priority_queue<Entry, std::vector<Entry>, std::greater<>> ready;
    for (std::size_t i = 0; i < pieces.size(); ++i) {
      if (waits[i] == 0) ready.emplace(last[i], i);
    }
    cut_.pieces.clear();
    while (!ready.empty()) {
      const std::size_t next = ready.top().second;
      ready.pop();
      cut_.pieces.push_back(std::move(pieces[next]));
      for (const std::size_t reader : readers[next]) {
        if (--waits[reader] == 0) ready.emplace(last[reader], reader);
      }
    }
  }

  static constexpr std::size_t nobody = ~std::size_t{0};

  const ir::Graph& graph_;
  const CutRules& rules_;
  const Target& target_;
  Pieces& cut_;
  const Mentions mentions_;
  const std::vector<bool> fixed_;
  std::vector<PieceId> maker_;                   // of each node: the piece that stores it
  std::vector<std::vector<PieceId>> producers_;  // of each piece
  std::vector<std::vector<PieceId>> read_by_;    // pieces that read what it makes
  std::vector<std::vector<Read>> reads_;         // of each piece
  std::vector<std::vector<SymbolId>> symbols_;   // that its kernel mentions
  std::vector<bool> returned_;                   // of each piece: it makes an output, or part of one
  std::vector<std::size_t> cluster_of_;
  analysis::ClusterGraph order_;  // of pieces: which of them may become one without a cycle
  std::vector<Cluster> clusters_;
  std::vector<Refusal> refusals_;
};

}  // namespace

std::vector<Refusal> stitch(const ir::Graph& graph, const CutRules& rules, const Target& target,
                            Pieces& cut) {
  return Stitcher(graph, rules, target, cut).run();
}

}  // namespace fuse::schedule
