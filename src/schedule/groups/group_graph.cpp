// SPDX-License-Identifier: Apache-2.0
#include "schedule/groups/group_graph.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "analysis/assumption_line.hpp"
#include "ir/graph/memory_values.hpp"
#include "schedule/choosers/model_choices.hpp"
#include "schedule/segments/gemm_epilogue.hpp"
#include "schedule/segments/loop_shape.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

/// Whether its loop meets only some of the elements of operand 0.
bool reads_a_part(const ir::Node& node) {
  const Relation relation = info(node.op).relation;
  return relation == Relation::slice || relation == Relation::dynamic_slice || relation == Relation::gather;
}

std::string text(const std::vector<Dim>& dims) {
  std::string line = "<";
  for (std::size_t i = 0; i < dims.size(); ++i) line += (i ? ", " : "") + dims[i].to_string();
  return line + '>';
}

std::vector<Dim> kept_dims(const ir::Graph& graph, const Loops& loops) {
  return ir::without_ones(loop_shape(graph, graph[loops.reduction]).kept);
}

/// Algorithm 2, line 2: both run over the same loops, or the consumer works on the reduced result, row by
/// row.
/// What would make their loops the same; empty: nothing that can be said of extents.
std::string equal_loops_by(const ir::Graph& graph, const Loops& producer, const Loops& consumer) {
  const std::vector<Dim> from = ir::without_ones(producer.dims), to = ir::without_ones(consumer.dims);
  if (from.size() != to.size()) return {};
  std::vector<DimRelation> relations;
  for (std::size_t i = 0; i < from.size(); ++i)
    if (!(from[i] == to[i])) relations.push_back(equal(from[i], to[i]));
  return analysis::assumption_line(graph, relations);
}

bool same_loops(const ir::Graph& graph, const Loops& producer, const Loops& consumer) {
  const std::vector<Dim> theirs = ir::without_ones(consumer.dims);
  if (ir::without_ones(producer.dims) == theirs) return true;
  return consumer.form == Loops::Form::none && kept_dims(graph, producer) == theirs;
}

/// Whether the view of a value of these loops starts (x: ends) with dims whose product is proven to be the
/// kept loop, so that the rest is the reduced one.
bool keeps_tiles(const Loops& loops, const std::vector<Dim>& view) {
  Dim whole = 1;
  for (std::size_t i = 0; i < view.size() && !(whole == loops.kept); ++i) {
    whole = whole * view[loops.form == Loops::Form::x ? view.size() - 1 - i : i];
  }
  return whole == loops.kept;
}

Choices choices_of(const ir::Graph& graph, NodeId reduction, const Target& target) {
  return model_choices(graph, phase_of(graph, reduction, {reduction}, {}), target);
}

Verdict refuse(const Rule* rule, Reason reason) { return {.rule = rule, .refused = true, .reason = reason}; }

}  // namespace

GroupGraph::GroupGraph(const ir::Graph& graph, const GroupOptions& options, const Target& target)
    : graph_(graph), options_(options), target_(target), merge_graph_(graph), users_(ir::users(graph)) {
  start();
}

GroupGraph::GroupGraph(const ir::Graph& graph, const Grouping& grouping, const GroupOptions& options,
                       const Target& target)
    : GroupGraph(graph, options, target) {
  for (const Group& group : grouping.groups) {
    for (const NodeId id : group.nodes) {
      const Id a = find(group.nodes.front()), b = find(id);
      if (a != b) merge(a, b, group.type);
    }
  }
}

/// Constants, and what only moves them, are computed wherever they are used, unless they must be in memory.
void GroupGraph::leave_out_free_nodes() {
  const std::size_t count = graph_.nodes.size();
  in_memory_ = ir::memory_values(graph_);
  returned_.assign(count, false);
  for (const ir::Output& output : graph_.outputs) returned_[output.node] = true;
  free_.assign(count, false);
  outside_.assign(count, false);
  for (NodeId id = 0; id < count; ++id) {
    const ir::Node& node = graph_[id];
    const ir::OpInfo& row = info(node.op);
    const bool moves = row.has(ir::Trait::source) || row.has(ir::Trait::movement);
    free_[id] = moves && !ir::is_given(node) && !in_memory_[id] &&
                std::all_of(node.operands.begin(), node.operands.end(), [&](NodeId o) { return free_[o]; });
    outside_[id] = ir::is_given(node) || free_[id];
  }
}

Loops GroupGraph::loops_of(NodeId id) const {
  const ir::Node& node = graph_[id];
  if (info(node.op).relation != Relation::reduce) return {.dims = node.type.dims};
  const LoopShape shape = loop_shape(graph_, node);
  Loops loops{.dims = graph_[node.operands[0]].type.dims,
              .kept = product(shape.kept),
              .reduced = product(shape.reduced),
              .reduction = id};
  loops.form = loops.kept.is(1) ? Loops::Form::all : shape.inner ? Loops::Form::y : Loops::Form::x;
  return loops;
}

void GroupGraph::start() {
  leave_out_free_nodes();
  const Mentions mentions(graph_);
  other_users_.resize(graph_.nodes.size());
  state_.resize(graph_.nodes.size());
  for (NodeId id = 0; id < graph_.nodes.size(); ++id) {
    if (outside_[id]) continue;
    other_users_[id] = static_cast<std::uint32_t>(users_[id].size()) + returned_[id];
    State& state = state_[find(id)];
    state.type = class_of(graph_, id);
    state.loops = loops_of(id);
    state.symbols = mentions.of(id);
    state.outputs = 1;
    if (info(graph_[id].op).relation == Relation::reshape) state.views = {id};
    for (const NodeId operand : graph_[id].operands) {
      if (!free_[operand]) state.inputs.push_back(operand);
    }
    std::sort(state.inputs.begin(), state.inputs.end());
    state.inputs.erase(std::unique(state.inputs.begin(), state.inputs.end()), state.inputs.end());
  }
  count_calls();
}

void GroupGraph::count_calls() {
  const auto is_call = [&](NodeId id) {
    const Relation relation = info(graph_[id].op).relation;
    return relation == Relation::contraction || relation == Relation::custom ? 1 : 0;
  };
  std::vector<Calls> calls(graph_.nodes.size());
  for (NodeId id = 0; id < calls.size(); ++id) {
    for (const NodeId operand : graph_[id].operands)
      calls[id].before = std::max(calls[id].before, calls[operand].before + is_call(operand));
  }
  for (auto id = static_cast<NodeId>(calls.size()); id-- > 0;) {
    for (const NodeId operand : graph_[id].operands)
      calls[operand].after = std::max(calls[operand].after, calls[id].after + is_call(id));
    if (!outside_[id]) state_[find(id)].calls = calls[id];
  }
}

/// Whether what waits for one of the two would have to wait for the other, too, so that a chain of calls gets
/// longer than each of theirs.
bool GroupGraph::lengthens_chain(Id a, Id b) const {
  const Calls &first = state_[a].calls, &second = state_[b].calls;
  return std::max(first.before, second.before) + std::max(first.after, second.after) >
         std::max(first.before + first.after, second.before + second.after);
}

/// Edges from a node of one group to a user in the other; walks the smaller group.
template <class F>
void GroupGraph::each_edge(Id producer, Id consumer, F&& f) const {
  if (merge_graph_.member_count(producer) <= merge_graph_.member_count(consumer)) {
    for (const NodeId id : merge_graph_.members(producer)) {
      for (const NodeId user : users_[id]) {
        if (!outside_[user] && find(user) == consumer) f(id, user);
      }
    }
    return;
  }
  for (const NodeId user : merge_graph_.members(consumer)) {
    const std::vector<NodeId>& operands = graph_[user].operands;
    for (auto operand = operands.begin(); operand != operands.end(); ++operand) {
      if (outside_[*operand] || find(*operand) != producer) continue;
      if (std::find(operands.begin(), operand, *operand) == operand) f(*operand, user);
    }
  }
}

std::vector<NodeId> GroupGraph::output_values(Id id) const {
  std::vector<NodeId> values;
  for (const NodeId node : merge_graph_.members(id)) {
    if (other_users_[node] > 0) values.push_back(node);
  }
  return values;
}

std::vector<NodeId> GroupGraph::merged_inputs(Id a, Id b) const {
  std::vector<NodeId> inputs = merged(state_[a].inputs, state_[b].inputs);
  std::erase_if(inputs, [&](NodeId id) {
    if (outside_[id]) return false;
    const Id group = find(id);
    return group == a || group == b;
  });
  return inputs;
}

std::size_t GroupGraph::merged_outputs(Id a, Id b) const {
  std::vector<NodeId> met;
  const auto meet = [&](NodeId id, NodeId) { met.push_back(id); };
  each_edge(a, b, meet);
  each_edge(b, a, meet);
  std::sort(met.begin(), met.end());
  std::size_t outputs = state_[a].outputs + state_[b].outputs;
  for (std::size_t first = 0, last = 0; first < met.size(); first = last) {
    while (last < met.size() && met[last] == met[first]) ++last;
    outputs -= other_users_[met[first]] == last - first;
  }
  return outputs;
}

bool GroupGraph::check_limits(Id a, Id b, Verdict& verdict) const {
  const std::size_t inputs = merged_inputs(a, b).size();
  if (inputs > static_cast<std::size_t>(options_.max_inputs)) {
    verdict = refuse(verdict.rule, Reason::input_cap);
    verdict.numbers = {{"inputs", std::to_string(inputs)},
                       {"max_inputs", std::to_string(options_.max_inputs)}};
    return false;
  }
  const std::size_t extents = merged(state_[a].symbols, state_[b].symbols).size();
  const auto bytes = [&](std::size_t outputs) { return bytes_an_argument * (inputs + outputs + extents); };
  if (bytes(state_[a].outputs + state_[b].outputs) <= target_.argument_bytes) return true;
  const std::size_t exact = bytes(merged_outputs(a, b));
  if (exact <= target_.argument_bytes) return true;
  verdict = refuse(verdict.rule, Reason::argument_limit);
  verdict.numbers = {{"argument_bytes", std::to_string(exact)},
                     {"limit", std::to_string(target_.argument_bytes)}};
  return false;
}

/// Whether the consumer is what the GEMM computes as well, and perhaps the broadcast of its bias.
bool GroupGraph::is_epilogue(Id producer, Id consumer) const {
  if (merge_graph_.member_count(producer) != 1 || merge_graph_.member_count(consumer) > 2) return false;
  const auto epilogue = gemm_epilogue(graph_, merge_graph_.members(producer).front(), users_, in_memory_);
  if (!epilogue || find(epilogue->result) != consumer) return false;
  const std::vector<NodeId>& read = graph_[epilogue->result].operands;
  const std::vector<NodeId> members = merge_graph_.members(consumer);
  return std::all_of(members.begin(), members.end(), [&](NodeId id) {
    const bool repeats = info(graph_[id].op).relation == Relation::broadcast;
    return id == epilogue->result || (repeats && std::find(read.begin(), read.end(), id) != read.end());
  });
}

Verdict GroupGraph::judge(Id producer, Id consumer, const Rule& rule, bool explain) {
  Verdict verdict{.rule = &rule};
  const Loops &from = state_[producer].loops, &to = state_[consumer].loops;
  const auto asks = [&](Check check) { return (rule.checks & bit(check)) != 0; };
  if (asks(Check::loop_dims) && !same_loops(graph_, from, to)) {
    verdict = refuse(&rule, Reason::loop_dims);
    if (explain) {
      verdict.numbers = {{"producer", text(from.dims)}, {"consumer", text(to.dims)}};
      verdict.assume = equal_loops_by(graph_, from, to);
    }
    return verdict;
  }
  if (asks(Check::canonical_form) && from.form != to.form) {
    verdict = refuse(&rule, Reason::canonical_form);
    if (explain) {
      verdict.numbers = {{"producer", std::string(to_string(from.form))},
                         {"consumer", std::string(to_string(to.form))}};
    }
    return verdict;
  }
  if (asks(Check::parameters) && from.form != Loops::Form::none && to.form != Loops::Form::none) {
    const Choices first = choices_of(graph_, from.reduction, target_);
    const Choices second = choices_of(graph_, to.reduction, target_);
    if (!(first == second)) {
      verdict = refuse(&rule, Reason::parameters);
      if (explain) verdict.numbers = {{"producer", first.to_string()}, {"consumer", second.to_string()}};
      return verdict;
    }
  }
  if (asks(Check::coverage)) {
    NodeId stored = 0;
    bool covered = true;
    each_edge(producer, consumer, [&](NodeId value, NodeId user) {
      if (returned_[value] && reads_a_part(graph_[user]) && graph_[user].operands[0] == value) {
        covered = false;
        stored = value;
      }
    });
    if (!covered) {
      verdict = refuse(&rule, Reason::coverage);
      if (explain) verdict.numbers = {{"output", graph_.value_name(stored)}};
      return verdict;
    }
  }
  if (asks(Check::tiles)) {
    const Dim elements = product(from.dims);
    for (const NodeId view : state_[consumer].views) {
      const ir::Type& value = graph_[graph_[view].operands[0]].type;
      const std::vector<Dim>& dims = graph_[view].type.dims;
      if (!(product(value.dims) == elements) || keeps_tiles(from, dims)) continue;
      verdict = refuse(&rule, Reason::loop_dims);
      if (explain) verdict.numbers = {{"producer", text(from.dims)}, {"consumer", text(dims)}};
      return verdict;
    }
  }
  if (asks(Check::epilogue) && !is_epilogue(producer, consumer)) {
    verdict = refuse(&rule, Reason::epilogue);
    if (explain) {
      const ir::Type& type = graph_[merge_graph_.members(producer).front()].type;
      verdict.numbers = {{"result", std::string(fuse::to_string(type.dtype))},
                         {"ops", std::to_string(merge_graph_.member_count(consumer))}};
    }
    return verdict;
  }
  if (asks(Check::prologue)) return refuse(&rule, Reason::prologue);
  if (!check_limits(producer, consumer, verdict)) return verdict;
  if (merge_graph_.would_cycle(producer, consumer)) return refuse(&rule, Reason::cycle);
  if (lengthens_chain(producer, consumer)) {
    verdict = refuse(&rule, Reason::chain);
    if (explain) {
      verdict.numbers = {{"calls before", std::to_string(state_[consumer].calls.before)},
                         {"calls after", std::to_string(state_[producer].calls.after)}};
    }
  }
  return verdict;
}

Verdict GroupGraph::judge(Id producer, Id consumer, bool explain) {
  const GroupClass from = state_[producer].type, to = state_[consumer].type;
  Verdict first = refuse(nullptr, Reason::no_rule);
  bool found = false;
  for (const Rule& rule : rules()) {
    if (!(rule.producer & bit(from)) || !(rule.consumer & bit(to)) || !(rule.sets & bit(options_.rules)))
      continue;
    const bool on = (bit(rule.layer) & options_.layers) != 0;
    Verdict verdict = on ? judge(producer, consumer, rule, explain) : refuse(&rule, Reason::layer_off);
    if (!verdict.refused) return verdict;
    if (!found) first = std::move(verdict);
    found = true;
  }
  if (!found && (from == GroupClass::boundary || to == GroupClass::boundary)) first.reason = Reason::boundary;
  if (!found && explain) {
    first.numbers = {{"producer", std::string(to_string(from))}, {"consumer", std::string(to_string(to))}};
  }
  return first;
}

Verdict GroupGraph::judge_parallel(Id a, Id b) {
  Verdict verdict;
  if (!check_limits(a, b, verdict)) return verdict;
  if (merge_graph_.would_cycle(a, b)) return refuse(nullptr, Reason::cycle);
  return verdict;
}

GroupGraph::Id GroupGraph::merge(Id a, Id b, GroupClass type) {
  State both{
      .type = type, .inputs = merged_inputs(a, b), .symbols = merged(state_[a].symbols, state_[b].symbols)};
  both.outputs = state_[a].outputs + state_[b].outputs;
  both.calls = {std::max(state_[a].calls.before, state_[b].calls.before),
                std::max(state_[a].calls.after, state_[b].calls.after)};
  const auto leave = [&](NodeId id, NodeId) { both.outputs -= --other_users_[id] == 0; };
  each_edge(a, b, leave);
  each_edge(b, a, leave);
  Loops &first = state_[a].loops, &second = state_[b].loops;
  const bool has_form = first.form != Loops::Form::none;
  const bool wider =
      second.form == Loops::Form::none && product(first.dims).hint() >= product(second.dims).hint();
  both.loops = std::move(has_form || wider ? first : second);
  if (state_[a].views.size() < state_[b].views.size()) state_[a].views.swap(state_[b].views);
  both.views = std::move(state_[a].views);
  both.views.insert(both.views.end(), state_[b].views.begin(), state_[b].views.end());
  const Id id = merge_graph_.merge(a, b);
  state_[a] = {};
  state_[b] = {};
  state_[id] = std::move(both);
  return id;
}

Grouping GroupGraph::result() const {
  Grouping grouping;
  grouping.free = free_;
  grouping.of.assign(graph_.nodes.size(), no_group);
  for (const Id id : merge_graph_.topological()) {
    if (outside_[id]) continue;
    Group group{.nodes = merge_graph_.members(id),
                .type = state_[id].type,
                .loops = state_[id].loops,
                .inputs = state_[id].inputs};
    for (const NodeId node : group.nodes) {
      grouping.of[node] = static_cast<GroupId>(grouping.groups.size());
      if (other_users_[node] > 0) group.outputs.push_back(node);
    }
    grouping.groups.push_back(std::move(group));
  }
  return grouping;
}

}  // namespace fuse::schedule
