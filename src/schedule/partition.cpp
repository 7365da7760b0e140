// SPDX-License-Identifier: Apache-2.0
#include "schedule/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "schedule/join.hpp"
#include "schedule/pieces.hpp"
#include "schedule/stitch.hpp"

namespace fuse::schedule {

using ir::NodeId;

namespace {

CutRules rules_of(const PartitionOptions& options, const Target& target) {
  CutRules rules{.max_inputs = static_cast<std::size_t>(options.groups.max_inputs),
                 .argument_bytes = target.argument_bytes,
                 .views = options.baseline == Baseline::off,
                 .launch_bytes = target.launch_seconds * target.bandwidth};
  switch (options.baseline) {
    case Baseline::off:
      rules.groups_are_kernels =
          options.groups.rules == RuleSet::apollo || options.groups.layers != all_layers;
      // A costly op that is broadcast is a candidate for a dominant (4.3, step 1).
      rules.costly_broadcast = options.schemes == SchemeRules::paper;
      break;
    case Baseline::xla:
      rules.costly_broadcast = rules.recompute = true;
      break;
    case Baseline::tvm:
      rules.recompute = true;
      break;
    case Baseline::none:
      rules.groups_are_kernels = true;
      break;
  }
  return rules;
}

/// Groups that are several pieces still, but for those that have been refused already.
std::vector<Refusal> refusals_of(const Partition& partition, std::vector<Refusal> refusals) {
  std::vector<std::vector<NodeId>> roots(partition.grouping.groups.size());
  std::unordered_set<GroupId> refused;
  for (const Refusal& refusal : refusals) refused.insert(refusal.group);
  for (const Piece& piece : partition.pieces) {
    if (piece.group != no_group) roots[piece.group].push_back(piece.root);
  }
  for (GroupId group = 0; group < roots.size(); ++group) {
    if (roots[group].size() < 2 || refused.contains(group)) continue;
    refusals.push_back({.group = group, .at = std::move(roots[group])});
  }
  std::stable_sort(refusals.begin(), refusals.end(),
                   [](const Refusal& a, const Refusal& b) { return a.group < b.group; });
  return refusals;
}

/// Which values are in memory so far. An assembled concat is when its parts are; a slice that is a view when
/// its whole is.
class Made {
 public:
  Made(const ir::Graph& graph, const Partition& partition)
      : views_(partition.views), made_(graph.nodes.size()) {
    for (NodeId id = 0; id < graph.nodes.size(); ++id) {
      made_[id] = ir::is_given(graph[id]);
    }
    for (const auto& [concat, parts] : views_.assembled) missing_[concat] = parts.size();
  }

  void make(NodeId id) {
    made_[id] = true;
    for (auto view = views_.of.find(id); view != views_.of.end(); view = views_.of.find(id)) {
      id = view->second.whole;
      if (--missing_.at(id) > 0) return;
      made_[id] = true;
    }
  }

  bool operator[](NodeId id) const {
    while (!made_[id]) {
      const auto view = views_.of.find(id);
      if (view == views_.of.end() || view->second.part) return false;
      id = view->second.whole;
    }
    return true;
  }

 private:
  const Views& views_;
  std::vector<bool> made_;
  std::map<NodeId, std::size_t> missing_;
};

/// The value that the memory is of.
NodeId memory_of(const Partition& partition, NodeId id) {
  id = partition.storage[id];
  for (auto view = partition.views.of.find(id); view != partition.views.of.end();
       view = partition.views.of.find(id)) {
    id = view->second.whole;
  }
  return id;
}

/// Wholes are in memory; a view has a step exactly if it is a part, which one concat has once; what pieces
/// make, given values and views have no other place.
template <class Fail>
void check_views(const ir::Graph& graph, const Partition& partition, const Fail& fail) {
  const Views& views = partition.views;
  for (const auto& [id, view] : views.of) {
    const std::string name = graph.value_name(id) + " in " + graph.value_name(view.whole) + ": ";
    if (partition.stored[id] != view.part)
      fail(name + (view.part ? "no step writes it" : "a step writes it"));
    const bool in_memory = partition.stored[view.whole] || views.of.count(view.whole);
    if (!in_memory) fail(name + "the whole is not in memory");
    if (view.part != (view.whole > id)) fail(name + "a slice follows its whole, a part precedes it");
    if (ir::is_given(graph[id])) fail(name + "its memory is given");
  }
  for (const auto& [concat, parts] : views.assembled) {
    Dim offset = 0;
    for (const NodeId part : parts) {
      const auto view = views.of.find(part);
      const bool stands = view != views.of.end() && view->second.whole == concat && view->second.part;
      if (!stands || view->second.offset != offset) {
        fail(graph.value_name(part) + " does not stand at its place in " + graph.value_name(concat));
      }
      offset = offset + product(graph[part].type.dims);
    }
  }
}

/// Every operand of what a kernel computes is computed in it or read by it.
template <class Fail>
void check_closed(const ir::Graph& graph, const Piece& piece, const Fail& fail) {
  std::unordered_set<NodeId> known(piece.nodes.begin(), piece.nodes.end());
  known.insert(piece.inputs.begin(), piece.inputs.end());
  if (piece.in_place) known.insert(graph[piece.root].operands[0]);
  for (NodeId id : piece.nodes) {
    for (NodeId operand : graph[id].operands) {
      if (!known.count(operand)) fail(graph.value_name(operand) + " is neither computed nor read");
    }
  }
}

/// What a kernel stores, and what ends a piece, are stages of it; each follows the stages that it reads.
template <class Fail>
void check_stages(const ir::Graph& graph, const Piece& piece, const Fail& fail) {
  const std::vector<Stage> stages = stages_of(graph, piece);
  const auto position = [&](NodeId id) {
    return std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.root == id; });
  };
  std::map<NodeId, int> passes;  // of what is computed: the reductions that must have ended before
  for (const NodeId id : piece.nodes) {
    int pass = 0;
    for (const NodeId operand : graph[id].operands) {
      const auto found = passes.find(operand);
      if (found == passes.end()) continue;
      const bool reduced = info(graph[operand].op).relation == ir::Relation::reduce;
      pass = std::max(pass, found->second + reduced);
    }
    const auto stage = position(id);
    if (stage == stages.end() && ends_piece(graph[id])) fail(graph.value_name(id) + " must end a piece");
    if (stage != stages.end() && stage->pass < pass)
      fail(graph.value_name(id) + " comes before what it reads");
    passes[id] = stage == stages.end() ? pass : stage->pass;
  }
  for (const NodeId result : results_of(piece)) {
    if (position(result) == stages.end()) fail(graph.value_name(result) + " is stored by no stage");
  }
}

/// What a phase reads, earlier ones store or the whole reads; what it stores, the whole does.
template <class Fail>
void check_phases(const ir::Graph& graph, const Piece& piece, const Fail& fail) {
  std::unordered_set<NodeId> known(piece.inputs.begin(), piece.inputs.end());
  const std::vector<NodeId> results = results_of(piece);
  for (const Piece& phase : piece.phases) {
    for (const NodeId input : phase.inputs) {
      if (!known.count(input)) fail(graph.value_name(input) + " is read before a phase makes it");
    }
    for (const NodeId result : results_of(phase)) {
      known.insert(result);
      if (std::find(results.begin(), results.end(), result) == results.end())
        fail(graph.value_name(result) + " is stored by a phase alone");
    }
  }
}

}  // namespace

Partition partition(const ir::Graph& graph, const PartitionOptions& options, const Target& target,
                    const analysis::Facts& facts) {
  Partition result;
  const bool grouped = options.baseline == Baseline::off || options.baseline == Baseline::none;
  GroupOptions rules = options.groups;
  if (options.baseline == Baseline::none) rules.layers = 0;
  if (grouped) result.grouping = group(graph, rules, target);
  const std::vector<GroupId> alone(graph.nodes.size(), no_group);
  const CutRules cuts = rules_of(options, target);
  Pieces cut = cut_into_pieces(graph, grouped ? result.grouping.of : alone, cuts, facts);
  std::vector<Refusal> refusals;
  if (options.stitch) refusals = stitch(graph, cuts, target, cut);
  using Join = PartitionOptions::Join;
  if (options.join == Join::always || (options.join == Join::gain && options.stitch)) {
    const bool always = options.join == Join::always;
    // Why a group could not be stitched says more than why what is left of it was not joined.
    std::unordered_set<GroupId> refused;
    for (const Refusal& refusal : refusals) refused.insert(refusal.group);
    for (Refusal& refusal : join(graph, cuts, options.schemes, always, target, cut)) {
      if (refused.insert(refusal.group).second) refusals.push_back(std::move(refusal));
    }
  }
  result.pieces = std::move(cut.pieces);
  result.storage = std::move(cut.storage);
  result.stored = std::move(cut.stored);
  result.views = std::move(cut.views);
  result.refusals = refusals_of(result, std::move(refusals));
  return result;
}

std::string_view to_string(Stage::Form form) {
  switch (form) {
    case Stage::Form::element:
      return "element";
    case Stage::Form::row:
      return "row";
    case Stage::Form::reduce:
      return "reduce";
    case Stage::Form::column_reduce:
      return "column_reduce";
    case Stage::Form::column:
      return "column";
  }
  return "?";
}

std::vector<NodeId> results_of(const Piece& piece) {
  return piece.results.empty() ? std::vector<NodeId>{piece.root} : piece.results;
}

std::span<const Piece> phases_of(const Piece& piece) {
  return piece.phases.empty() ? std::span(&piece, 1) : std::span(piece.phases);
}

std::vector<Stage> stages_of(const ir::Graph& graph, const Piece& piece) {
  if (!piece.stages.empty()) return piece.stages;
  const bool reduces = info(graph[piece.root].op).relation == ir::Relation::reduce;
  return {{.root = piece.root, .form = reduces ? Stage::Form::reduce : Stage::Form::element}};
}

NodeId element_of(const ir::Graph& graph, const Stage& stage) {
  if (stage.form == Stage::Form::element) return stage.root;
  return graph[stage.maximum.value_or(stage.root)].operands[0];
}

std::vector<NodeId> totals_of(const Stage& stage) {
  if (stage.maximum) return {*stage.maximum, stage.root};
  return {stage.root};
}

std::vector<DType> reduction_state(const ir::Graph& graph, const Stage& stage) {
  const DType element = graph[element_of(graph, stage)].type.dtype;
  if (stage.maximum) return {element, element};
  if (info(graph[stage.root].op).identity == ir::Identity::none) return {element, i64};
  return {element};
}

NodeId dominant(const ir::Graph& graph, const Piece& piece) {
  const std::vector<Stage> stages = stages_of(graph, piece);
  const auto found = std::find_if(stages.begin(), stages.end(),
                                  [](const Stage& stage) { return stage.form == Stage::Form::reduce; });
  return found == stages.end() ? piece.root : found->root;
}

bool has_columns(const Piece& piece) {
  return std::any_of(piece.stages.begin(), piece.stages.end(),
                     [](const Stage& stage) { return stage.form == Stage::Form::column_reduce; });
}

int last_pass(const std::vector<Stage>& stages) {
  int last = 0;
  for (const Stage& stage : stages) {
    if (stage.form != Stage::Form::column) last = std::max(last, stage.pass);
  }
  return last;
}

std::string stages_text(const ir::Graph& graph, const std::vector<Stage>& stages) {
  std::string text;
  for (std::size_t i = 0; i < stages.size(); ++i) {
    if (i > 0) text += stages[i].pass == stages[i - 1].pass ? ", " : " | ";
    const std::vector<NodeId> totals = totals_of(stages[i]);
    for (const NodeId id : totals) {
      text += id == totals.front() ? "" : " with ";
      text += graph.value_name(id) + ' ' + std::string(to_string(graph[id].op));
    }
  }
  return text;
}

std::string_view to_string(Piece::Kind kind) {
  switch (kind) {
    case Piece::Kind::kernel:
      return "kernel";
    case Piece::Kind::gemm:
      return "gemm";
    case Piece::Kind::custom:
      return "custom";
  }
  return "?";
}

std::string print(const ir::Graph& graph, const Partition& partition) {
  std::string text = print(graph, partition.grouping);
  const auto list = [&](const std::vector<NodeId>& nodes) {
    std::string line;
    for (NodeId id : nodes) line += (line.empty() ? "" : " ") + graph.value_name(id);
    return line;
  };
  for (std::size_t i = 0; i < partition.pieces.size(); ++i) {
    const Piece& piece = partition.pieces[i];
    text +=
        fmt::format("piece {} {} {{{}}} reads {{{}}}", i, piece.in_place ? "update" : to_string(piece.kind),
                    list(piece.nodes), list(piece.inputs));
    if (piece.results.size() > 1) text += fmt::format(" stores {{{}}}", list(piece.results));
    const char* before = " stages ";
    for (const Piece& phase : phases_of(piece)) {
      if (phases_of(piece).size() == 1 && phase.stages.size() < 2) continue;
      text += before + stages_text(graph, stages_of(graph, phase));
      before = " || ";
    }
    text += fmt::format(" ends at {} {} ({})\n", graph.value_name(piece.root),
                        to_string(graph[piece.root].op), piece.end);
  }
  text += print(graph, partition.views);
  for (const ir::Output& output : graph.outputs) {
    const NodeId storage = partition.storage[output.node];
    if (storage != output.node) {
      text += fmt::format("output {} is {} in the buffer of {}\n", output.name, graph.value_name(output.node),
                          graph.value_name(storage));
    }
  }
  return text;
}

void verify(const ir::Graph& graph, const Partition& partition) {
  const auto fail = [](std::string message) {
    throw Error(
        {.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "partition: " + message});
  };
  std::unordered_set<NodeId> overwritten;  // inputs that a piece has updated in place
  Made made(graph, partition);
  check_views(graph, partition, fail);
  for (const Piece& piece : partition.pieces) {
    if (piece.nodes.empty() || piece.nodes.back() != piece.root) fail("a piece does not end at its root");
    for (NodeId input : piece.inputs) {
      if (!made[input]) fail(graph.value_name(input) + " is read before a piece makes it");
      if (overwritten.count(memory_of(partition, input))) {
        fail(graph.value_name(input) + " is read after it was overwritten");
      }
    }
    if (piece.in_place) {
      const NodeId donor = graph[piece.root].operands[0];
      const auto reads = [&](NodeId input) { return memory_of(partition, input) == donor; };
      if (std::any_of(piece.inputs.begin(), piece.inputs.end(), reads)) {
        fail(graph.value_name(donor) + " is read by the piece that overwrites it");
      }
      overwritten.insert(donor);
    }
    if (piece.kind == Piece::Kind::kernel) {
      check_closed(graph, piece, fail);
      for (const Piece& phase : phases_of(piece)) {
        check_stages(graph, phase, fail);
        check_closed(graph, phase, fail);
      }
      check_phases(graph, piece, fail);
    }
    for (const NodeId result : results_of(piece)) {
      if (made[result]) fail(graph.value_name(result) + " is made twice");
      made.make(result);
    }
  }
  for (const ir::Output& output : graph.outputs) {
    if (!made[partition.storage[output.node]]) fail("output " + output.name + " has no buffer");
  }
}

Partition::Partition() = default;
Partition::Partition(const Partition&) = default;
Partition::Partition(Partition&&) noexcept = default;
Partition& Partition::operator=(const Partition&) = default;
Partition& Partition::operator=(Partition&&) noexcept = default;
Partition::~Partition() = default;

}  // namespace fuse::schedule
