// SPDX-License-Identifier: Apache-2.0
#include "schedule/regional/halo_tiles.hpp"

#include <algorithm>
#include <unordered_map>
#include <unordered_set>
#include <utility>

namespace fuse::schedule {
namespace {

using ir::NodeId;
using ir::Relation;

constexpr std::int64_t farthest = 1 << 12;  // positions between what is read and what is made of it

bool is_element_wise(const ir::Graph& graph, const Phase& phase) {
  if (phase.in_place || !phase.overwrites.empty()) return false;
  const std::vector<Dim>& dims = graph[phase.root].type.dims;
  return std::all_of(phase.stages.begin(), phase.stages.end(),
                     [&](const Stage& stage) {
                       return stage.form == Stage::Form::element && graph[stage.root].type.dims == dims;
                     }) &&
         info(graph[dominant(phase)].op).relation != Relation::scan;
}

/// What is needed of values, from the last phase back.
class Needs {
 public:
  Needs(const ir::Graph& graph, const std::vector<Phase>& phases) : graph_(graph) {
    for (const Phase& phase : phases) made_.insert(phase.results.begin(), phase.results.end());
  }

  void add(NodeId id, const Windows& windows) { add(needs_, id, windows); }

  /// What all results of the phase are needed for; none where nothing needs them, or a window is too wide.
  std::optional<Windows> of(const Phase& phase) {
    for (const NodeId result : phase.results) {
      const auto found = needs_.find(result);
      if (found != needs_.end()) add(phase.root, Windows(found->second));
    }
    const auto found = needs_.find(phase.root);
    if (found == needs_.end()) return std::nullopt;
    const Windows& windows = found->second;
    const bool fit = std::all_of(windows.begin(), windows.end(), [](const Window& window) {
      return -farthest < window.low && window.high < farthest;
    });
    return fit ? std::optional(windows) : std::nullopt;
  }

  /// Adds what the phase needs of values for these windows of its results. False where it reads a value of
  /// another phase in a way that has no windows.
  bool add_operands(const Phase& phase, const Windows& windows) {
    Map own;                              // what is needed inside of the phase
    std::unordered_set<NodeId> anywhere;  // what is needed at other positions
    for (const Stage& stage : phase.stages) own.emplace(stage.root, windows);
    for (auto id = phase.nodes.rbegin(); id != phase.nodes.rend(); ++id) {
      const std::vector<NodeId>& operands = graph_[*id].operands;
      for (std::size_t i = 0; i < operands.size(); ++i) {
        const auto found = own.find(*id);
        const std::optional<Windows> moved = anywhere.contains(*id) || found == own.end()
                                                 ? std::nullopt
                                                 : through(graph_[*id], i, found->second);
        if (moved) {
          add(own, operands[i], *moved);
        } else {
          anywhere.insert(operands[i]);
        }
      }
    }
    for (const NodeId input : phase.inputs) {
      if (!made_.contains(input)) continue;
      const auto found = own.find(input);
      if (anywhere.contains(input) || found == own.end()) return false;
      add(input, found->second);
    }
    return true;
  }

 private:
  using Map = std::unordered_map<NodeId, Windows>;

  /// Widens what is needed of the value by these windows.
  static void add(Map& needs, NodeId id, const Windows& windows) {
    const auto [entry, added] = needs.try_emplace(id, windows);
    if (added) return;
    for (std::size_t i = 0; i < windows.size(); ++i) {
      entry->second[i].low = std::min(entry->second[i].low, windows[i].low);
      entry->second[i].high = std::max(entry->second[i].high, windows[i].high);
    }
  }

  /// The windows of an operand, for those of the op; none where it is read at other positions.
  std::optional<Windows> through(const ir::Node& node, std::size_t operand, Windows windows) const {
    const auto shift = [&](std::size_t dim, const Dim& by, int sign) {
      if (!by.is_constant() || by.constant() > farthest) return false;
      windows[dim].low += sign * by.constant();
      windows[dim].high += sign * by.constant();
      return true;
    };
    switch (info(node.op).relation) {
      case Relation::identity:
        return windows;
      case Relation::slice: {
        const auto& slice = ir::attr<ir::SliceAttr>(node);
        for (std::size_t i = 0; i < windows.size(); ++i) {
          if (slice.strides[i] != 1 || !shift(i, slice.starts[i], 1)) return std::nullopt;
        }
        return windows;
      }
      case Relation::pad: {
        if (operand > 0) return std::nullopt;
        const auto& pad = ir::attr<ir::PadAttr>(node);
        for (std::size_t i = 0; i < windows.size(); ++i) {
          if (!shift(i, pad.low[i], -1)) return std::nullopt;
        }
        return windows;
      }
      case Relation::concat: {
        const auto axis = static_cast<std::size_t>(ir::attr<ir::AxisAttr>(node).axis);
        for (std::size_t before = 0; before < operand; ++before) {
          if (!shift(axis, graph_[node.operands[before]].type.dims[axis], -1)) return std::nullopt;
        }
        return windows;
      }
      default:
        return std::nullopt;
    }
  }

  const ir::Graph& graph_;
  std::unordered_set<NodeId> made_;
  Map needs_;
};

}  // namespace

std::optional<HaloTiles> halo_tiles(const ir::Graph& graph, const std::vector<Phase>& phases,
                                    const std::vector<NodeId>& results) {
  if (phases.size() < 2) return std::nullopt;
  HaloTiles tiles{.dims = graph[phases.back().root].type.dims, .phases = {}};
  if (tiles.dims.empty()) return std::nullopt;
  for (const Phase& phase : phases) {
    if (!is_element_wise(graph, phase) || graph[phase.root].type.dims.size() != tiles.dims.size())
      return std::nullopt;
    const bool leaves = std::any_of(phase.results.begin(), phase.results.end(), [&](NodeId result) {
      return std::binary_search(results.begin(), results.end(), result);
    });
    if (leaves && &phase != &phases.back()) return std::nullopt;
  }
  Needs needs(graph, phases);
  needs.add(phases.back().root, Windows(tiles.dims.size()));
  tiles.phases.resize(phases.size());
  for (std::size_t i = phases.size(); i-- > 0;) {
    std::optional<Windows> windows = needs.of(phases[i]);
    if (!windows || !needs.add_operands(phases[i], *windows)) return std::nullopt;
    tiles.phases[i] = std::move(*windows);
  }
  return tiles;
}

std::vector<std::int64_t> extents_of(const Windows& windows, const std::vector<int>& tile) {
  std::vector<std::int64_t> extents;
  for (std::size_t i = 0; i < tile.size(); ++i) extents.push_back(tile[i] + windows[i].high - windows[i].low);
  return extents;
}

std::vector<Dim> tile_counts(const std::vector<Dim>& dims, const std::vector<int>& tile) {
  std::vector<Dim> counts;
  for (std::size_t i = 0; i < tile.size(); ++i) counts.push_back(ceil_div(dims[i], tile[i]));
  return counts;
}

}  // namespace fuse::schedule
