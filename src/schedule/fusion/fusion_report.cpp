// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/fusion_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "schedule/groups/group_graph.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

class Explainer {
 public:
  Explainer(const ir::Graph& graph, const Partition& partition, const PartitionOptions& options,
            const Target& target)
      : partition_(partition) {
    if (options.baseline == Baseline::off) groups_.emplace(graph, partition.grouping, options.groups, target);
  }

  void explain(UnfusedEdge& edge) {
    const Segment& producer = partition_.segments[edge.producer];
    const Segment& consumer = partition_.segments[edge.consumer];
    if (!groups_) {
      edge.reason = Reason::baseline;
      edge.numbers = {{"ends at", producer.end}};
      return;
    }
    if (producer.group == consumer.group || producer.group == no_group || consumer.group == no_group) {
      edge.reason = Reason::scheme_unavailable;
      edge.numbers = {{"ends at", producer.end}};
      for (const Refusal& refusal : partition_.refusals) {
        if (refusal.group != producer.group || refusal.numbers.empty()) continue;
        if (!contains(refusal.at, producer.root) || !contains(refusal.at, consumer.root)) continue;
        edge.reason = refusal.reason;
        edge.numbers = refusal.numbers;
      }
      return;
    }
    const Verdict& verdict = judge(producer.group, consumer.group);
    edge.reason = verdict.refused ? verdict.reason : Reason::order;
    if (verdict.rule) edge.rule = verdict.rule->name;
    edge.numbers = verdict.numbers;
    edge.assume = verdict.assume;
  }

 private:
  static bool contains(const std::vector<NodeId>& nodes, NodeId id) {
    return std::find(nodes.begin(), nodes.end(), id) != nodes.end();
  }

  /// Edges between the same groups share a verdict.
  const Verdict& judge(GroupId producer, GroupId consumer) {
    const std::uint64_t key = (std::uint64_t{producer} << 32) | consumer;
    const auto [found, added] = verdicts_.try_emplace(key);
    if (added) {
      const auto id = [&](GroupId group) {
        return groups_->find(partition_.grouping.groups[group].nodes.front());
      };
      found->second = groups_->judge(id(producer), id(consumer), true);
    }
    return found->second;
  }

  const Partition& partition_;
  std::optional<GroupGraph> groups_;
  std::unordered_map<std::uint64_t, Verdict> verdicts_;
};

}  // namespace

std::vector<UnfusedEdge> unfused_edges(const ir::Graph& graph, const Partition& partition,
                                       const PartitionOptions& options, const Target& target) {
  constexpr std::size_t nobody = ~std::size_t{0};
  std::vector<std::size_t> made_by(graph.nodes.size(), nobody);
  for (std::size_t i = 0; i < partition.segments.size(); ++i) {
    for (const NodeId result : partition.segments[i].results) made_by[result] = i;
  }
  Explainer explainer(graph, partition, options, target);
  std::vector<UnfusedEdge> edges;
  for (std::size_t i = 0; i < partition.segments.size(); ++i) {
    for (const NodeId input : partition.segments[i].inputs) {
      for (const NodeId value : written_values(partition.views, partition.storage[input])) {
        if (made_by[value] == nobody) continue;  // an input or a parameter
        const ir::Type& type = graph[value].type;
        UnfusedEdge edge{.value = value,
                         .producer = made_by[value],
                         .consumer = i,
                         .bytes = product(type.dims) * static_cast<std::int64_t>(size_of(type.dtype))};
        explainer.explain(edge);
        edges.push_back(std::move(edge));
      }
    }
  }
  return edges;
}

std::string_view would_change(Reason reason) {
  switch (reason) {
    case Reason::no_rule:
      return "a row of the rule table for these classes; --partition fuse has more rows than apollo";
    case Reason::layer_off:
      return "selecting the layer of the row with --layers";
    case Reason::loop_dims:
      return "equal loops, an assumption that makes them so, or fuse's own rules, where a scheme carries the "
             "value";
    case Reason::parameters:
      return "equal nests, or fuse's own rules, where a scheme carries the value";
    case Reason::canonical_form:
      return "reductions in the same form, or fuse's own rules, where a scheme carries the value";
    case Reason::coverage:
      return "not returning the value whose part is read, or reading all of it";
    case Reason::epilogue:
      return "an epilogue that the GEMM library has and that changes no rounding";
    case Reason::prologue:
      return "a GEMM that computes its operands as it loads them";
    case Reason::boundary:
      return "the ops of the user's kernel as ops of the graph";
    case Reason::input_cap:
      return "a larger --max-inputs";
    case Reason::argument_limit:
      return "fewer values read and written";
    case Reason::cycle:
      return "nothing: what lies between them waits for one and is waited for by the other";
    case Reason::chain:
      return "another order of GEMMs: what else waits for the producer would wait for the consumer's GEMMs";
    case Reason::no_gain:
      return "smaller kernels, which leave more of the device idle; for stages of one kernel, more rows";
    case Reason::scheme_unavailable:
      return "a stitching scheme that carries the value inside one kernel";
    case Reason::order:
      return "another order of the rules: these groups may be merged now";
    case Reason::baseline:
      return "fuse's own rules";
  }
  return "";
}

std::string print(const ir::Graph& graph, const std::vector<UnfusedEdge>& edges) {
  std::string text;
  for (const UnfusedEdge& edge : edges) {
    std::string numbers;
    for (const auto& [name, value] : edge.numbers)
      numbers += fmt::format("{}{} = {}", numbers.empty() ? " (" : ", ", name, value);
    if (!numbers.empty()) numbers += ')';
    text += fmt::format("segment {} -> segment {}  {} {}: {}{}  {} bytes\n", edge.producer, edge.consumer,
                        graph.value_name(edge.value), to_string(graph[edge.value].op), to_string(edge.reason),
                        numbers, edge.bytes.to_string());
  }
  return text;
}

}  // namespace fuse::schedule
