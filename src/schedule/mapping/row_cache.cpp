// SPDX-License-Identifier: Apache-2.0
#include "schedule/mapping/row_cache.hpp"

#include <algorithm>
#include <fuse/error.hpp>
#include <limits>
#include <map>
#include <optional>

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

class Finder {
 public:
  Finder(const ir::Graph& graph, const Phase& phase, bool loads_alone)
      : graph_(graph),
        loads_alone_(loads_alone),
        phase_(phase),
        stages_(phase.stages),
        first_(places(), no_pass),
        worth_(places()) {
    const ir::Node& dominant = graph[schedule::dominant(phase)];
    if (info(dominant.op).relation == Relation::reduce) dims_ = graph[dominant.operands[0]].type.dims;
  }

  int instructions(const std::vector<CachedValue>& cached) const {
    // An H200 took 130 us for softmax of 2^26 elements of bf16 whose sums were scaled, 58 instructions each.
    constexpr int costly = 8, rescaled = 40;
    int sum = 0;
    for (const Stage& stage : stages_) sum += stage.maximum ? rescaled : 1;
    for (int pass = 0; pass <= last_pass(stages_); ++pass) {
      walk(pass, [&](NodeId id, std::size_t place) {
        const auto is_taken = [&](const CachedValue& each) {
          return each.node == id && each.first < pass && pass <= each.last;
        };
        if (std::any_of(cached.begin(), cached.end(), is_taken)) return true;
        if (is_inside(place)) sum += info(graph_[id].op).has(ir::Trait::costly) ? costly : 1;
        return false;
      });
    }
    return sum;
  }

  std::vector<CachedValue> run() {
    const int last = last_pass(stages_);
    for (int pass = 0; pass <= last; ++pass) {
      if (pass > 0) walk(pass, [&](NodeId id, std::size_t place) { return needed(id, place, pass); });
      if (pass == last) break;
      walk(pass, [&](NodeId, std::size_t place) {
        first_[place] = std::min(first_[place], pass);
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
    std::vector<bool> seen(places());
    while (!work.empty()) {
      const NodeId id = work.back();
      work.pop_back();
      const std::size_t place = place_of(id);
      if (seen[place]) continue;
      seen[place] = true;
      if (stops(id, place) || !is_inside(place) || info(graph_[id].op).relation != Relation::identity)
        continue;
      work.insert(work.end(), graph_[id].operands.begin(), graph_[id].operands.end());
    }
  }

  /// What a walk meets has a place: the phase's nodes, then its inputs.
  std::size_t places() const { return phase_.nodes.size() + phase_.inputs.size(); }
  std::size_t place_of(NodeId id) const {
    const auto node = std::lower_bound(phase_.nodes.begin(), phase_.nodes.end(), id);
    if (node != phase_.nodes.end() && *node == id)
      return static_cast<std::size_t>(node - phase_.nodes.begin());
    const auto input = std::lower_bound(phase_.inputs.begin(), phase_.inputs.end(), id);
    if (input == phase_.inputs.end() || *input != id)
      throw Error({.kind = ErrorKind::internal,
                   .code = ErrorCode::internal,
                   .message = "row cache: a walk leaves its phase"});
    return phase_.nodes.size() + static_cast<std::size_t>(input - phase_.inputs.begin());
  }
  bool is_inside(std::size_t place) const { return place < phase_.nodes.size(); }

  /// Notes that the pass takes the element from the pass that computed it first, if that is worth while.
  bool needed(NodeId id, std::size_t place, int pass) {
    if (first_[place] == no_pass || !worth(id)) return false;
    last_[{first_[place], id}] = pass;
    return true;
  }

  /// Whether it takes a load of the tensor's size, or a costly op.
  bool worth(NodeId id) {
    const std::size_t place = place_of(id);
    if (worth_[place]) return *worth_[place];
    const ir::Node& node = graph_[id];
    const Relation relation = info(node.op).relation;
    bool result = false;
    if (!is_inside(place)) {
      result = node.type.dims == dims_;
    } else if (relation == Relation::identity) {
      result = !loads_alone_ && computes_much(node);
    } else {
      result = relation != Relation::none && relation != Relation::broadcast;
    }
    return *(worth_[place] = result);
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
  static constexpr int no_pass = std::numeric_limits<int>::max();
  std::vector<int> first_;                      // by place: the pass that computes it first
  std::map<std::pair<int, NodeId>, int> last_;  // last pass that needs it, by first pass and node
  std::vector<std::optional<bool>> worth_;      // by place
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
