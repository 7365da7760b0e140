// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/partition.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <unordered_set>

#include "schedule/fusion/cut.hpp"
#include "schedule/fusion/donated_outputs.hpp"
#include "schedule/fusion/horizontal_fusion.hpp"
#include "schedule/fusion/phase_fusion.hpp"
#include "schedule/fusion/stitch.hpp"

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
      rules.costly_broadcast = options.schemes == SchemeRules::astitch;
      break;
    case Baseline::xla:
      rules.costly_broadcast = rules.recompute = true;
      break;
    case Baseline::tvm:
      rules.recompute = true;
      break;
    case Baseline::one_op:
      rules.groups_are_kernels = true;
      break;
  }
  return rules;
}

/// The refusals of groups that are still several segments, without those that have been refused already.
std::vector<Refusal> refusals_of(const Partition& partition, std::vector<Refusal> refusals) {
  std::vector<std::vector<NodeId>> roots(partition.grouping.groups.size());
  std::unordered_set<GroupId> refused;
  for (const Refusal& refusal : refusals) refused.insert(refusal.group);
  for (const Segment& segment : partition.segments) {
    if (segment.group != no_group) roots[segment.group].push_back(segment.root);
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

/// Wholes are in memory; a view has a step exactly if it is a part, which one concat has once; what segments
/// make, given values and views have no other location.
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
      const bool stands = view != views.of.end() && view->second.whole == concat;
      if (!stands || view->second.offset != offset) {
        fail(graph.value_name(part) + " does not stand at its location in " + graph.value_name(concat));
      }
      offset = offset + product(graph[part].type.dims);
    }
  }
}

/// Checks that every operand of what a phase computes is computed in it or read by it.
template <class Fail>
void check_closed(const ir::Graph& graph, const Phase& phase, const Fail& fail) {
  std::unordered_set<NodeId> known(phase.nodes.begin(), phase.nodes.end());
  known.insert(phase.inputs.begin(), phase.inputs.end());
  if (phase.in_place) known.insert(graph[phase.root].operands[0]);
  for (NodeId id : phase.nodes) {
    for (NodeId operand : graph[id].operands) {
      if (!known.count(operand)) fail(graph.value_name(operand) + " is neither computed nor read");
    }
  }
}

/// What a kernel stores, and what ends a segment, are stages of it; each follows the stages that it reads.
template <class Fail>
void check_stages(const ir::Graph& graph, const Phase& phase, const Fail& fail) {
  const std::vector<Stage>& stages = phase.stages;
  const auto position = [&](NodeId id) {
    return std::find_if(stages.begin(), stages.end(), [&](const Stage& stage) { return stage.root == id; });
  };
  std::map<NodeId, int> passes;  // for what is computed, the reductions that must have ended before
  for (const NodeId id : phase.nodes) {
    int pass = 0;
    for (const NodeId operand : graph[id].operands) {
      const auto found = passes.find(operand);
      if (found == passes.end()) continue;
      const bool reduced = info(graph[operand].op).relation == ir::Relation::reduce;
      pass = std::max(pass, found->second + reduced);
    }
    const auto stage = position(id);
    if (stage == stages.end() && ends_segment(graph[id])) fail(graph.value_name(id) + " must end a segment");
    if (stage != stages.end() && stage->pass < pass)
      fail(graph.value_name(id) + " comes before what it reads");
    passes[id] = stage == stages.end() ? pass : stage->pass;
  }
  for (const NodeId result : phase.results) {
    if (position(result) == stages.end()) fail(graph.value_name(result) + " is stored by no stage");
  }
}

/// What a phase reads, earlier ones store or the whole reads; what it stores and computes, the whole does.
template <class Fail>
void check_phases(const ir::Graph& graph, const Partition& partition, const Segment& segment,
                  const Fail& fail) {
  std::vector<NodeId> nodes;
  for (const Phase& phase : segment.phases) nodes.insert(nodes.end(), phase.nodes.begin(), phase.nodes.end());
  std::sort(nodes.begin(), nodes.end());
  nodes.erase(std::unique(nodes.begin(), nodes.end()), nodes.end());
  if (nodes != segment.nodes) fail("a kernel computes other values than its phases do");
  std::unordered_set<NodeId> known(segment.inputs.begin(), segment.inputs.end());
  const std::vector<NodeId>& results = segment.results;
  for (const Phase& phase : segment.phases) {
    for (const NodeId input : phase.inputs) {
      if (!known.count(input)) fail(graph.value_name(input) + " is read before a phase makes it");
    }
    for (const NodeId result : phase.results) {
      if (!segment.horizontal()) known.insert(result);
      const bool stored = std::find(results.begin(), results.end(), result) != results.end();
      if (!stored && (!segment.regional() || partition.stored[result]))
        fail(graph.value_name(result) + " is stored by a phase alone");
    }
  }
}

}  // namespace

Chooser chooser_of(const PartitionOptions& options, const DesignStore& designs) {
  Chooser chooser = options.schemes == SchemeRules::astitch ? astitch_rules() : cost_model();
  if (!options.grid_barriers) chooser = without_grid_barriers(std::move(chooser));
  if (options.baseline != Baseline::off) return without_splits(std::move(chooser));
  if (options.search)
    chooser = searched({.grid_barriers = options.grid_barriers, .store = designs}, std::move(chooser));
  return chooser;
}

Partition partition(const ir::Graph& graph, const PartitionOptions& options, const Target& target,
                    const analysis::Facts& facts) {
  return partition(graph, options, target, facts, chooser_of(options));
}

Partition partition(const ir::Graph& graph, const PartitionOptions& options, const Target& target,
                    const analysis::Facts& facts, const Chooser& chooser, const ir::Decide& decide) {
  const bool grouped = options.baseline == Baseline::off || options.baseline == Baseline::one_op;
  GroupOptions rules = options.groups;
  if (options.baseline == Baseline::one_op) rules.layers = 0;
  Grouping grouping;
  if (grouped) grouping = group(graph, rules, target, decide);
  const std::vector<GroupId> alone(graph.nodes.size(), no_group);
  CutRules cuts = rules_of(options, target);
  cuts.decide = decide;
  Partition result = cut_into_segments(graph, grouped ? grouping.of : alone, cuts, facts);
  result.grouping = std::move(grouping);
  std::vector<Refusal> refusals;
  if (options.stitch) refusals = stitch(graph, cuts, chooser, target, result);
  // Why a group could not be stitched says more than why the rest did not become one kernel.
  std::unordered_set<GroupId> refused;
  for (const Refusal& refusal : refusals) refused.insert(refusal.group);
  const auto add = [&](std::vector<Refusal> more) {
    for (Refusal& refusal : more) {
      if (refused.insert(refusal.group).second) refusals.push_back(std::move(refusal));
    }
  };
  const bool regional = options.regional && options.stitch && options.baseline == Baseline::off &&
                        options.schemes == SchemeRules::fuse && options.groups.rules == RuleSet::fuse &&
                        options.groups.layers == all_layers;
  if (regional) add(fuse_regionally(graph, cuts, chooser, options.horizontal, target, result));
  using Cooperative = PartitionOptions::Cooperative;
  const bool wanted = options.cooperative == Cooperative::always ||
                      (options.cooperative == Cooperative::gain && options.stitch);
  if (wanted && options.grid_barriers) {
    const bool always = options.cooperative == Cooperative::always;
    add(fuse_cooperatively(graph, cuts, chooser, always, target, result));
  }
  place_donated_outputs(graph, decide, result);
  const bool beside = options.horizontal && options.stitch && options.baseline == Baseline::off &&
                      options.groups.layers == all_layers;
  if (beside) {
    for (Refusal& refusal : fuse_horizontally(graph, cuts, chooser, target, result))
      refusals.push_back(std::move(refusal));
  }
  result.refusals = refusals_of(result, std::move(refusals));
  return result;
}

NodeId memory_of(const Partition& partition, NodeId id) {
  id = partition.storage[id];
  for (auto view = partition.views.of.find(id); view != partition.views.of.end();
       view = partition.views.of.find(id)) {
    id = view->second.whole;
  }
  return id;
}

std::string print(const ir::Graph& graph, const Partition& partition) {
  std::string text = print(graph, partition.grouping);
  const auto list = [&](const std::vector<NodeId>& nodes) {
    std::string line;
    for (NodeId id : nodes) line += (line.empty() ? "" : " ") + graph.value_name(id);
    return line;
  };
  for (std::size_t i = 0; i < partition.segments.size(); ++i) {
    const Segment& segment = partition.segments[i];
    text += fmt::format("segment {} {} {{{}}} reads {{{}}}", i,
                        segment.in_place() ? "update" : to_string(segment.kind), list(segment.nodes),
                        list(segment.inputs));
    if (segment.results.size() > 1) text += fmt::format(" stores {{{}}}", list(segment.results));
    const char* before = " stages ";
    for (const Phase& phase : segment.phases) {
      if (segment.phases.size() == 1 && phase.stages.size() == 1) continue;
      text += before + stages_text(graph, phase.stages);
      before = segment.horizontal() ? " beside " : segment.regional() ? " then " : " || ";
    }
    text += fmt::format(" ends at {} {} ({})\n", graph.value_name(segment.root),
                        to_string(graph[segment.root].op), segment.end);
  }
  text += print(graph, partition.views) + print(graph, partition.in_place);
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
  std::unordered_set<NodeId> overwritten;  // values that are written over
  Made made(graph, partition);
  check_views(graph, partition, fail);
  for (const Segment& segment : partition.segments) {
    if (segment.nodes.empty() || segment.nodes.back() != segment.root)
      fail("a segment does not end at its root");
    for (NodeId input : segment.inputs) {
      if (!made[input]) fail(graph.value_name(input) + " is read before a segment makes it");
      if (overwritten.count(memory_of(partition, input))) {
        fail(graph.value_name(input) + " is read after it was overwritten");
      }
    }
    for (const NodeId result : segment.results) {
      const auto taken = partition.in_place.of.find(result);
      if (taken == partition.in_place.of.end()) continue;
      const NodeId before = taken->second;
      if (!made[before]) fail(graph.value_name(before) + " is overwritten before a segment makes it");
      const auto reads = [&](NodeId input) { return memory_of(partition, input) == before; };
      if (std::any_of(segment.inputs.begin(), segment.inputs.end(), reads)) {
        const std::string why = why_not_over(graph, partition, segment, result, before);
        if (!why.empty()) fail(why);
      }
      if (!overwritten.insert(before).second) fail(graph.value_name(before) + " is overwritten twice");
    }
    for (const Phase& phase : segment.phases) {
      if (phase.in_place && !partition.in_place.of.contains(phase.root))
        fail(graph.value_name(phase.root) + " is written in memory that it does not take");
    }
    if (segment.kind == Segment::Kind::kernel) {
      if (segment.phases.empty()) fail("a kernel has no phase");
      for (const Phase& phase : segment.phases) {
        check_stages(graph, phase, fail);
        check_closed(graph, phase, fail);
      }
      check_phases(graph, partition, segment, fail);
    }
    for (const NodeId result : segment.results) {
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
