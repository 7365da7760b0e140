// SPDX-License-Identifier: Apache-2.0
#include "schedule/search/design_key.hpp"

#include <algorithm>
#include <bit>
#include <vector>

#include "ir/graph/hash.hpp"

namespace fuse::schedule {
namespace {

using ir::NodeId;

/// Adds parts of a segment, whose values count by their positions.
class KeyOfSegment {
 public:
  KeyOfSegment(const ir::Graph& graph, const Segment& segment, const ir::Hasher::SymbolNumbers& numbers)
      : graph_(graph), segment_(segment), hasher_(numbers) {}

  std::uint64_t value() {
    count(static_cast<std::uint64_t>(segment_.kind));
    count(static_cast<std::uint64_t>(segment_.between));
    count(segment_.inputs.size());
    for (const NodeId input : segment_.inputs) hasher_.add(graph_[input].type);
    count(segment_.nodes.size());
    for (const NodeId id : segment_.nodes) {
      const ir::Node& node = graph_[id];
      count(static_cast<std::uint64_t>(node.op));
      hasher_.add(node.attr).add(node.type);
      add(node.operands);
    }
    add(segment_.results);
    count(segment_.phases.size());
    for (const Phase& phase : segment_.phases) add(phase);
    return hasher_.value();
  }

 private:
  void count(std::uint64_t number) { hasher_.add(number); }

  std::uint64_t position(NodeId id) const {
    const auto among = [&](const std::vector<NodeId>& list) -> std::uint64_t {
      const auto found = std::lower_bound(list.begin(), list.end(), id);
      return found != list.end() && *found == id ? static_cast<std::uint64_t>(found - list.begin()) + 1 : 0;
    };
    const std::uint64_t node = among(segment_.nodes);
    return node > 0 ? 2 * node : 2 * among(segment_.inputs) + 1;
  }

  void add(const std::vector<NodeId>& values) {
    count(values.size());
    for (const NodeId id : values) count(position(id));
  }

  void add(const Phase& phase) {
    count(position(phase.root));
    count(std::uint64_t{phase.in_place});
    add(phase.nodes);
    add(phase.inputs);
    add(phase.results);
    count(phase.stages.size());
    for (const Stage& stage : phase.stages) {
      count(position(stage.root));
      count(static_cast<std::uint64_t>(stage.form));
      count(static_cast<std::uint64_t>(stage.pass));
      count(stage.maximum ? position(*stage.maximum) : 0);
    }
    count(phase.overwrites.size());
    for (const Overwrite& each : phase.overwrites) add({each.result, each.input});
  }

  const ir::Graph& graph_;
  const Segment& segment_;
  ir::Hasher hasher_;
};

}  // namespace

std::uint64_t segment_key(const ir::Graph& graph, const Segment& segment) {
  std::vector<NodeId> nodes = segment.inputs;
  nodes.insert(nodes.end(), segment.nodes.begin(), segment.nodes.end());
  const ir::Hasher::SymbolNumbers numbers = ir::number_symbols(graph, nodes);
  return KeyOfSegment(graph, segment, numbers).value();
}

std::uint64_t target_key(const Target& target) {
  // A new field of the target fails to compile here until it is added.
  const auto& [name, machine, arch, sms, warp_size, threads_per_block, threads_per_sm, blocks_per_sm,
               registers, shared_per_block, shared_optin, shared_per_sm, shared_reserved, shared_unit,
               max_cluster, l2_bytes, argument_bytes, bandwidth, flops, launch, node, cluster, barrier] =
      target;
  ir::Hasher hasher;
  hasher.add(name).add(machine);
  for (const std::int64_t each :
       {std::int64_t{arch}, std::int64_t{sms}, std::int64_t{warp_size}, std::int64_t{threads_per_block},
        std::int64_t{threads_per_sm}, std::int64_t{blocks_per_sm}, std::int64_t{registers}, shared_per_block,
        shared_optin, shared_per_sm, shared_reserved, shared_unit, std::int64_t{max_cluster}, l2_bytes,
        static_cast<std::int64_t>(argument_bytes)})
    hasher.add(static_cast<std::uint64_t>(each));
  for (const double each : {bandwidth, flops, launch, node, cluster, barrier})
    hasher.add(std::bit_cast<std::uint64_t>(each));
  return hasher.value();
}

}  // namespace fuse::schedule
