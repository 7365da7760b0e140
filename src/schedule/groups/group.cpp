// SPDX-License-Identifier: Apache-2.0
#include "schedule/groups/group.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "schedule/groups/group_graph.hpp"
#include "schedule/groups/parallel_stitch.hpp"
#include "schedule/segments/argument_limit.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// The existing groups that merges have to stay inside of: the group of each node.
using Within = std::vector<GroupId>;

/// Algorithm 1's loop over the edges, for one row; Algorithm 2 has the same loop.
bool apply(const ir::Graph& graph, GroupGraph& groups, const Rule& rule, const Within* within) {
  bool any = false;
  for (bool changed = true; changed;) {
    changed = false;
    for (NodeId user = 0; user < graph.nodes.size(); ++user) {
      if (!groups.grouped(user)) continue;
      for (const NodeId operand : graph[user].operands) {
        if (!groups.grouped(operand) || (within && (*within)[operand] != (*within)[user])) continue;
        const GroupGraph::Id producer = groups.find(operand), consumer = groups.find(user);
        if (producer == consumer || !(rule.producer & bit(groups.type(producer))) ||
            !(rule.consumer & bit(groups.type(consumer))) || groups.judge(producer, consumer, rule).refused) {
          continue;
        }
        groups.merge(producer, consumer, rule.result);
        changed = any = true;
      }
    }
  }
  return any;
}

void aggregate(const ir::Graph& graph, GroupGraph& groups, const GroupOptions& options, Layer layer,
               const Within* within = nullptr) {
  if (!(options.layers & bit(layer))) return;
  // As printed, each row has its turn once. Our rows give classes that earlier ones take again.
  for (bool again = true; again;) {
    again = false;
    for (const Rule& rule : rules()) {
      if (rule.layer == layer && (rule.sets & bit(options.rules)))
        again |= apply(graph, groups, rule, within);
    }
    if (options.rules == RuleSet::apollo || layer == Layer::aggregate) return;
  }
}

/// Whether the node reads a value of its group that the rules would not have put together with it.
bool reads_within(const ir::Graph& graph, const Grouping& grouping, const GroupGraph& again, NodeId id) {
  const std::vector<NodeId>& operands = graph[id].operands;
  return std::any_of(operands.begin(), operands.end(), [&](NodeId operand) {
    return grouping.of[operand] == grouping.of[id] && again.find(operand) != again.find(id);
  });
}

/// The layers, run again inside each group, must give the group back; Layer III may have composed several.
template <class Fail>
void check_rules(const ir::Graph& graph, const Grouping& grouping, const GroupOptions& options,
                 const Target& target, const Fail& fail) {
  GroupGraph again(graph, options, target);
  aggregate(graph, again, options, Layer::aggregate, &grouping.of);
  aggregate(graph, again, options, Layer::stitch, &grouping.of);
  for (const Group& group : grouping.groups) {
    for (const NodeId id : group.nodes) {
      if (again.find(id) == again.find(group.nodes.front())) continue;
      if (!(options.layers & bit(Layer::parallel)) || reads_within(graph, grouping, again, id)) {
        fail(fmt::format("no rule puts {} and {} together", graph.value_name(group.nodes.front()),
                         graph.value_name(id)));
      }
    }
  }
}

}  // namespace

std::string_view to_string(Loops::Form form) {
  switch (form) {
    case Loops::Form::none:
      return "none";
    case Loops::Form::all:
      return "all";
    case Loops::Form::x:
      return "x";
    case Loops::Form::y:
      return "y";
  }
  return "?";
}

std::string_view to_string(Reason reason) {
  switch (reason) {
    case Reason::no_rule:
      return "no-rule";
    case Reason::layer_off:
      return "layer-off";
    case Reason::loop_dims:
      return "loop-dims";
    case Reason::parameters:
      return "parameters";
    case Reason::canonical_form:
      return "canonical-form";
    case Reason::coverage:
      return "coverage";
    case Reason::epilogue:
      return "epilogue";
    case Reason::prologue:
      return "prologue";
    case Reason::boundary:
      return "boundary";
    case Reason::input_cap:
      return "input-cap";
    case Reason::argument_limit:
      return "argument-limit";
    case Reason::cycle:
      return "cycle";
    case Reason::chain:
      return "chain";
    case Reason::no_gain:
      return "no-gain";
    case Reason::scheme_unavailable:
      return "scheme-unavailable";
    case Reason::order:
      return "order";
    case Reason::baseline:
      return "baseline";
  }
  return "?";
}

Grouping group(const ir::Graph& graph, const GroupOptions& options, const Target& target,
               const ir::Decide& decide) {
  GroupGraph groups(graph, options, target);
  aggregate(graph, groups, options, Layer::aggregate);
  aggregate(graph, groups, options, Layer::stitch);
  if (options.layers & bit(Layer::parallel)) {
    stitch_parallel(groups, contention_model(graph, groups, target), decide);
  }
  return groups.result();
}

std::string print(const ir::Graph& graph, const Grouping& grouping) {
  std::string text;
  for (std::size_t i = 0; i < grouping.groups.size(); ++i) {
    const Group& group = grouping.groups[i];
    std::string nodes;
    for (const NodeId id : group.nodes) nodes += (nodes.empty() ? "" : " ") + graph.value_name(id);
    text += fmt::format("group {} {} {{{}}}", i, to_string(group.type), nodes);
    if (group.loops.form != Loops::Form::none) {
      text += fmt::format(" form {}({}, {})", to_string(group.loops.form), group.loops.kept.to_string(),
                          group.loops.reduced.to_string());
    }
    text += '\n';
  }
  return text;
}

void verify(const ir::Graph& graph, const Grouping& grouping, const GroupOptions& options,
            const Target& target) {
  const auto fail = [](const std::string& message) {
    throw Error({.kind = ErrorKind::internal, .code = ErrorCode::internal, .message = "groups: " + message});
  };
  std::vector<GroupId> of(graph.nodes.size(), no_group);
  for (GroupId g = 0; g < grouping.groups.size(); ++g) {
    for (const NodeId id : grouping.groups[g].nodes) {
      if (of[id] != no_group) fail(graph.value_name(id) + " is in two groups");
      of[id] = g;
    }
  }
  if (of != grouping.of) fail("the groups and their index differ");
  for (NodeId id = 0; id < graph.nodes.size(); ++id) {
    const bool given = ir::is_given(graph[id]);
    if (of[id] == no_group && !given && !grouping.free[id]) fail(graph.value_name(id) + " is in no group");
    if (of[id] == no_group) continue;
    for (const NodeId operand : graph[id].operands) {
      if (of[operand] != no_group && of[operand] > of[id]) {
        fail(graph.value_name(operand) + " is made after a group reads it");
      }
    }
  }
  const auto is = [&](NodeId id, ir::Relation relation) { return info(graph[id].op).relation == relation; };
  const Mentions mentions(graph);
  for (const Group& group : grouping.groups) {
    if (group.nodes.size() == 1) continue;
    const auto has = [&](ir::Relation relation) {
      return std::any_of(group.nodes.begin(), group.nodes.end(), [&](NodeId id) { return is(id, relation); });
    };
    if (has(ir::Relation::custom)) fail("a user's kernel stands alone");
    if (group.type != GroupClass::contraction && has(ir::Relation::contraction)) {
      fail("the GEMM library runs nothing besides its epilogue");
    }
    if (group.inputs.size() > static_cast<std::size_t>(options.max_inputs)) {
      fail(fmt::format("a group reads {} values, {} are allowed", group.inputs.size(), options.max_inputs));
    }
    std::vector<SymbolId> extents;
    for (const NodeId id : group.nodes) extents = merged(extents, mentions.of(id));
    if (bytes_an_argument * (group.inputs.size() + group.outputs.size() + extents.size()) >
        target.argument_bytes) {
      fail("a group needs more argument bytes than a launch takes");
    }
  }
  check_rules(graph, grouping, options, target, fail);
}

}  // namespace fuse::schedule
