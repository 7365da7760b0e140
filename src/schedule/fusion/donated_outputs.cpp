// SPDX-License-Identifier: Apache-2.0
#include "schedule/fusion/donated_outputs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "ir/graph/fixed_values.hpp"
#include "schedule/fusion/overwrite_order.hpp"
#include "schedule/fusion/segment_graph.hpp"
#include "schedule/segments/transposed.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

bool reads(const Partition& partition, const Segment& segment, NodeId memory) {
  return std::any_of(segment.inputs.begin(), segment.inputs.end(),
                     [&](NodeId input) { return memory_of(partition, input) == memory; });
}

/// The nodes of the phase that read `old` at another position than their own, first ones first.
std::vector<NodeId> elsewhere(const ir::Graph& graph, const Partition& partition, const Phase& phase,
                              NodeId old) {
  // What is read at another position than the results', in graph order from the results down.
  std::set<NodeId> moved;
  std::vector<NodeId> result;
  for (auto id = phase.nodes.rbegin(); id != phase.nodes.rend(); ++id) {
    const ir::Node& node = graph[*id];
    const Relation relation = info(node.op).relation;
    for (std::size_t i = 0; i < node.operands.size(); ++i) {
      const NodeId operand = node.operands[i];
      const bool stays = relation == Relation::identity || relation == Relation::reshape ||
                         (relation == Relation::update && i == 0);
      const bool moves = !stays || moved.contains(*id);
      if (std::binary_search(phase.nodes.begin(), phase.nodes.end(), operand)) {
        if (moves) moved.insert(operand);
      } else if (memory_of(partition, operand) == old && (moves || partition.storage[operand] != old)) {
        result.push_back(*id);
      }
    }
  }
  std::reverse(result.begin(), result.end());
  return result;
}

class Placer {
 public:
  Placer(const ir::Graph& graph, const ir::Decide& decide, Partition& partition)
      : graph_(graph), decide_(decide), partition_(partition), fixed_(ir::fixed_values(graph)) {}

  void run() {
    const SegmentGraph segments(graph_, partition_);
    std::vector<UpdateChain> chains;
    for (InPlaceChoice& choice : partition_.in_place.choices) {
      if (choice.taken() || choice.is_update) continue;
      const ir::Output& output = graph_.outputs[choice.output];
      const NodeId value = partition_.storage[output.node];
      std::string why = unplaced(value, output.donor);
      if (why.empty()) why = placed_by(segments.maker[value], value, output.donor);
      const auto asked = [&] { return std::vector{output.node}; };
      if (why.empty() && !decided(decide_, ir::Question::view, graph_, output.node, true, asked))
        why = "decisions say so";
      if (why.empty()) {
        note_overwrites(segments.maker[value], value, output.donor);
        placed_.insert(value);
      }
      choice.refused = why;
      if (why.empty()) chains.push_back({choice.output, output.donor, {value}});
    }
    if (chains.empty()) return;
    order_overwrites(graph_, partition_, chains, [&](const UpdateChain& chain) {
      for (Segment& segment : partition_.segments) {
        for (Phase& phase : segment.phases) {
          std::erase_if(phase.overwrites,
                        [&](const Overwrite& each) { return each.result == chain.updates[0]; });
        }
      }
    });
  }

 private:
  std::string name(NodeId id) const { return graph_.value_name(id); }

  /// Why the value cannot lie in the donor whoever makes it.
  std::string unplaced(NodeId value, NodeId donor) {
    if (ir::is_given(graph_[value])) return name(value) + " is the caller's memory";
    if (fixed_[value]) return name(value) + " follows from parameters alone";
    if (partition_.views.assembled.contains(value)) return name(value) + " is made in parts";
    if (const auto view = partition_.views.of.find(value); view != partition_.views.of.end())
      return fmt::format("{} lies in {}", name(value), name(view->second.whole));
    if (partition_.in_place.of.contains(value) || placed_.contains(value))
      return name(value) + " is in the memory of another input";
    for (const ir::Output& output : graph_.outputs) {
      if (partition_.storage[output.node] == donor)
        return fmt::format("output '{}' is {}", output.name, name(donor));
    }
    return {};
  }

  /// Why the segment that makes the value cannot write it over the donor.
  std::string placed_by(SegmentId maker, NodeId value, NodeId donor) {
    if (maker == SegmentGraph::nobody) return "no step makes " + name(value);
    const Segment& segment = partition_.segments[maker];
    if (!reads(partition_, segment, donor)) return {};
    return why_not_over(graph_, partition_, segment, value, donor);
  }

  /// The phase that makes the value knows what it reads of the donor.
  void note_overwrites(SegmentId maker, NodeId value, NodeId donor) {
    Segment& segment = partition_.segments[maker];
    for (const NodeId input : segment.inputs) {
      if (memory_of(partition_, input) == donor) segment.phases[0].overwrites.push_back({value, input});
    }
  }

  const ir::Graph& graph_;
  const ir::Decide& decide_;
  Partition& partition_;
  const std::vector<bool> fixed_;
  std::set<NodeId> placed_;
};

}  // namespace

void place_donated_outputs(const ir::Graph& graph, const ir::Decide& decide, Partition& partition) {
  Placer(graph, decide, partition).run();
}

std::string why_not_over(const ir::Graph& graph, const Partition& partition, const Segment& segment,
                         NodeId result, NodeId old) {
  const auto name = [&](NodeId id) { return graph.value_name(id); };
  if (segment.kind != Segment::Kind::kernel)
    return fmt::format("the step that makes {} reads {} as a whole", name(result), name(old));
  const auto found = std::find_if(segment.phases.begin(), segment.phases.end(), [&](const Phase& each) {
    return std::binary_search(each.results.begin(), each.results.end(), result);
  });
  const Phase& phase = *found;
  // Phases of a horizontal kernel run at any time of each other, and so do the blocks of a regional one.
  const bool alone = std::all_of(segment.phases.begin(), segment.phases.end(), [&](const Phase& each) {
    return &each == &phase || std::none_of(each.inputs.begin(), each.inputs.end(),
                                           [&](NodeId input) { return memory_of(partition, input) == old; });
  });
  const bool apart = segment.phases.size() == 1 || (alone && (segment.horizontal() || segment.regional()));
  const bool elements = apart && !phase.in_place &&
                        std::all_of(phase.stages.begin(), phase.stages.end(), [&](const Stage& stage) {
                          const Relation relation = info(graph[stage.root].op).relation;
                          return stage.form == Stage::Form::element && relation != Relation::scan;
                        });
  if (!elements)
    return fmt::format("the kernel that makes {} needs {} in several threads or passes", name(result),
                       name(old));
  if (const std::vector<NodeId> readers = elsewhere(graph, partition, phase, old); !readers.empty())
    return fmt::format("{} reads {} at other elements, in the kernel that makes {}", name(readers.front()),
                       name(old), name(result));
  if (transposed(graph, phase)) return fmt::format("the kernel that makes {} works on tiles", name(result));
  return {};
}

}  // namespace fuse::schedule
