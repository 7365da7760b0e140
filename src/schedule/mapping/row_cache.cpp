// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/row_cache.hpp"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <unordered_set>

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

class Finder {
 public:
  Finder(const ir::Graph& graph, const Phase& phase, bool loads_alone)
      : graph_(graph), loads_alone_(loads_alone), phase_(phase), stages_(phase.stages) {
    const ir::Node& dominant = graph[schedule::dominant(phase)];
    if (info(dominant.op).relation == Relation::reduce) dims_ = graph[dominant.operands[0]].type.dims;
  }

  int instructions(const std::vector<CachedValue>& cached) const {
    // An H200 took 130 us for softmax of 2^26 elements of bf16 whose sums were scaled, 58 instructions each.
    constexpr int costly = 8, rescaled = 40;
    int sum = 0;
    for (const Stage& stage : stages_) sum += stage.maximum ? rescaled : 1;
    for (int pass = 0; pass <= last_pass(stages_); ++pass) {
      walk(pass, [&](NodeId id) {
        const auto is_taken = [&](const CachedValue& each) {
          return each.node == id && each.first < pass && pass <= each.last;
        };
        if (std::any_of(cached.begin(), cached.end(), is_taken)) return true;
        if (is_inside(id)) sum += info(graph_[id].op).has(ir::Trait::costly) ? costly : 1;
        return false;
      });
    }
    return sum;
  }

  std::vector<CachedValue> run() {
    const int last = last_pass(stages_);
    for (int pass = 0; pass <= last; ++pass) {
      if (pass > 0) walk(pass, [&](NodeId id) { return needed(id, pass); });
      if (pass == last) break;
      walk(pass, [&](NodeId id) {
        first_.emplace(id, pass);
        return false;
      });
    }
    std::vector<CachedValue> result;
    for (const auto& [key, pass] : last_) result.push_back({key.second, key.first, pass});
    return result;
  }

 private:
  /// Visits what the loop of a pass computes at its own element, operands after users, and nothing below what
  /// `stops`.
  template <class Stops>
  void walk(int pass, Stops stops) const {
    std::vector<NodeId> work;
    for (const Stage& stage : stages_) {
      if (stage.pass != pass || !walks(stage.form)) continue;
      work.push_back(element_of(graph_, stage));
    }
    std::unordered_set<NodeId> seen;
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      if (!seen.insert(id).second || stops(id)) continue;
      if (!is_inside(id) || info(graph_[id].op).relation != Relation::identity) continue;
      work.insert(work.end(), graph_[id].operands.begin(), graph_[id].operands.end());
    }
  }

  bool is_inside(NodeId id) const { return std::binary_search(phase_.nodes.begin(), phase_.nodes.end(), id); }

  /// Notes that the pass takes the element from the pass that computed it first, if that is worth while.
  bool needed(NodeId id, int pass) {
    const auto first = first_.find(id);
    if (first == first_.end() || !worth(id)) return false;
    last_[{first->second, id}] = pass;
    return true;
  }

  /// Whether it takes a load of the tensor's size, or a costly op.
  bool worth(NodeId id) {
    const auto known = worth_.find(id);
    if (known != worth_.end()) return known->second;
    const ir::Node& node = graph_[id];
    const Relation relation = info(node.op).relation;
    bool result = false;
    if (std::binary_search(phase_.inputs.begin(), phase_.inputs.end(), id)) {
      result = node.type.dims == dims_;
    } else if (relation == Relation::identity) {
      result = !loads_alone_ && computes_much(node);
    } else {
      result = relation != Relation::none && relation != Relation::broadcast;
    }
    return worth_[id] = result;
  }

  bool computes_much(const ir::Node& node) {
    return info(node.op).has(ir::Trait::costly) ||
           std::any_of(node.operands.begin(), node.operands.end(), [&](NodeId o) { return worth(o); });
  }

  const ir::Graph& graph_;
  const bool loads_alone_;
  const Phase& phase_;  // its nodes and inputs are in graph order
  const std::vector<Stage>& stages_;
  std::vector<Dim> dims_;
  std::unordered_map<NodeId, int> first_;       // the pass that computes it first
  std::map<std::pair<int, NodeId>, int> last_;  // last pass that needs it, by first pass and node
  std::unordered_map<NodeId, bool> worth_;
};

}  // namespace

std::vector<CachedValue> cached_values(const ir::Graph& graph, const Phase& phase) {
  return Finder(graph, phase, false).run();
}

std::vector<CachedValue> loaded_values(const ir::Graph& graph, const Phase& phase) {
  return Finder(graph, phase, true).run();
}

std::vector<CachedValue> values_to_cache(const ir::Graph& graph, const Phase& phase, bool packed) {
  return packed ? loaded_values(graph, phase) : cached_values(graph, phase);
}

int instructions(const ir::Graph& graph, const Phase& phase, const std::vector<CachedValue>& cached) {
  return Finder(graph, phase, false).instructions(cached);
}

std::int64_t cache_registers(const ir::Graph& graph, const std::vector<CachedValue>& cached,
                             std::int64_t elements, bool packed) {
  std::map<int, std::int64_t> live;  // after each pass
  for (const CachedValue& each : cached) {
    const auto bytes = static_cast<std::int64_t>(size_of(graph[each.node].type.dtype));
    const std::int64_t registers = packed ? (elements * bytes + 3) / 4 : elements * (bytes > 4 ? 2 : 1);
    for (int pass = each.first; pass < each.last; ++pass) live[pass] += registers;
  }
  std::int64_t most = 0;
  for (const auto& [pass, registers] : live) most = std::max(most, registers);
  return most;
}

}  // namespace fuse::schedule
